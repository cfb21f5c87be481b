"""What processes of their own do to a study's folder in tests: run a job, or die in the midst of one."""

import os
import signal
from pathlib import Path

import torch

from calida.runs import RunConfig, RunFolder
from calida.studies import job

QUICK = {"epochs": 2, "rounds": 3, "passes": 1, "batch_size": 20, "groups": 2}


def run_and_tell(config, out, log):
    """Run a job, and write the recipe of every run that this process makes to the log."""
    torch.set_num_threads(1)
    execute = job.execute

    def tell(config, *rest, **options):
        with Path(log).open("a") as file:
            file.write(f"{config.recipe}\n")
        return execute(config, *rest, **options)

    job.execute = tell
    job.run_job(job.Job("blobs", RunConfig.from_toml(config)), out)


def run_and_die(config, out):
    """Run a job until its second round of adaptation is recorded, then die by SIGKILL."""
    torch.set_num_threads(1)
    add = RunFolder.add_round

    def die(folder, record):
        add(folder, record)
        if record.phase == "adapt" and record.round == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    RunFolder.add_round = die
    job.run_job(job.Job("blobs", RunConfig.from_toml(config)), out)
