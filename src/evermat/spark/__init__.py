"""The data pipeline on Spark: sessions, sources, the dictionary at scale, DataFrames in and out.

Nothing here is imported unless somebody has a SparkSession or asks the command line for one. Sessions are used through the DataFrame API alone, so
that Spark Connect is as good as any.
"""
