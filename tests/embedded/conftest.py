from tests.embedded.support_embedded import cluster, finished_cluster, state_dir

__all__ = ["cluster", "finished_cluster", "state_dir"]
