"""Options of commands and keywords of functions: fields of frozen records, by concern and by planner."""
