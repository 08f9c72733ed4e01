"""Compiled inner loops: functions on arrays, nothing else. Each has a plain-Python twin in the tests."""
