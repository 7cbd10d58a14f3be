"""LakeSink and LakeSource: topics to files and Iceberg tables, and files to topics (extra `lake`).

Files are on a local path, S3, Google Cloud Storage or Azure, through obstore; rows are Arrow
batches. Setting names are those of Confluent's S3 sink and Iceberg's sink where they mean the same.
"""
