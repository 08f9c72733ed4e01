"""Bytes in and out, and text formats: sources, sinks, JSON, protobuf text."""
