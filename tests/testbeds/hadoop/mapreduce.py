"""A MapReduce job of a user of the tests' YARN: the word count of Hadoop's own examples."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.testbeds.hadoop import jars
from tests.testbeds.hadoop.configuration import write_configuration
from tests.testbeds.hadoop.yarn import Yarn

_STAGING: Final = "/mapreduce"
"""Where jobs keep their files in HDFS while they run."""
_DRIVER: Final = "org.apache.hadoop.examples.ExampleDriver"


def word_count(yarn: Yarn, user: str, source: str, target: str) -> subprocess.Popen[bytes]:
    """Begin to count the words of a file in HDFS as `user`; the process ends with the job.

    The master of the job has 512 MB and one device, each of its tasks 256 MB.
    """
    yarn.hdfs.ask("PUT", _STAGING, "MKDIRS")
    yarn.hdfs.ask("PUT", _STAGING, "SETPERMISSION", permission="1777")
    conf = yarn.home / "mapreduce"
    for name in ("core-site.xml", "hdfs-site.xml", "yarn-site.xml", "resource-types.xml", "log4j.properties"):
        (conf / name).parent.mkdir(exist_ok=True)
        (conf / name).write_text((yarn.home / "conf" / name).read_text())
    write_configuration(conf / "mapred-site.xml", _settings(yarn.home / "conf"))
    command = ["setpriv", "--pdeathsig", "KILL", "--", *jars.command(_DRIVER, conf, "wordcount", source, target)]
    with (yarn.home / "mapreduce.log").open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, "HADOOP_USER_NAME": user}
        )


def _settings(conf: Path) -> Mapping[str, object]:
    # YARN's own class path begins with a folder of the container, and an archive of classes serves none such
    java = " ".join([*jars.options("mapreduce", heap="128m"), "-cp", jars.class_path(conf)])
    return {
        "mapreduce.framework.name": "yarn",
        "mapreduce.application.classpath": f"{conf}:{jars.folder()}/*",
        "yarn.app.mapreduce.am.command-opts": java,
        "yarn.app.mapreduce.am.resource.memory": 512,
        "yarn.app.mapreduce.am.resource.yarn.io/gpu": 1,
        "yarn.app.mapreduce.am.staging-dir": _STAGING,
        "yarn.app.mapreduce.am.create-intermediate-jh-base-dir": "true",
        "mapreduce.map.java.opts": java,
        "mapreduce.map.memory.mb": 256,
        "mapreduce.reduce.java.opts": java,
        "mapreduce.reduce.memory.mb": 256,
        "mapreduce.task.io.sort.mb": 16,
    }
