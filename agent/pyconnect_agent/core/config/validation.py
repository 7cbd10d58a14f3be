"""Placeholder of the module that follows; see config_infos."""

from pyconnect_agent.core.config.config_infos import ConfigInfos

__all__ = ["ConfigInfos"]
