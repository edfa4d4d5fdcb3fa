"""Relations in delimited text, JSON lines and Parquet."""
