"""Mixed-integer programs and HiGHS, the only importer of highspy."""
