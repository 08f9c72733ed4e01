"""Bytes in and out, and text formats: sources, sinks, folders that appear at once, JSON, protobuf text."""
