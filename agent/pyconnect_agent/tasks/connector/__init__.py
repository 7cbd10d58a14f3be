"""The process of a connector instance: its host, its checks, its task configs."""
