"""The JSON shapes of jobs, tasks and attempts in OpenPAI's API; they are built without the job's document.

Times are milliseconds since 1970, keys are camelCase, and unknown values are null.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Shape(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A value with OpenPAI's JSON shape."""


class RetryDetails(Shape, frozen=True):
    """Retries of a job by cause: its own failures, the platform's, or resource contention."""

    user: int = 0
    platform: int = 0
    resource: int = 0


class JobLine(Shape, frozen=True):
    """One entry of the job list (`JobSummary`)."""

    debug_id: str
    name: str
    username: str
    state: str
    sub_state: str
    execution_type: str
    tags: tuple[str, ...]
    retries: int
    retry_details: RetryDetails
    retry_delay_time: int | None
    submission_time: int
    created_time: int
    launched_time: int | None
    completed_time: int | None
    app_exit_code: int | None
    virtual_cluster: str
    total_gpu_number: int
    total_task_number: int
    total_task_role_number: int
    job_priority: str | None


class JobLines(Shape, frozen=True):
    """One page of the job list, with the number of jobs that pass the filter if that was requested."""

    data: tuple[JobLine, ...]
    total_count: int | None = None


class ExitSpecView(Shape, frozen=True):
    """One row of the exit code table."""

    code: int
    phrase: str
    issuer: str
    causer: str
    type: str
    stage: str
    behavior: str
    reaction: str
    reason: str = ""
    repro: tuple[str, ...] = ()
    solution: tuple[str, ...] = ()


class ExitMessages(Shape, frozen=True):
    """The messages about an end by the container, the runtime inside it, and the launcher."""

    container: str | None = None
    runtime: Any = None
    launcher: str | None = None


class JobStanding(Shape, frozen=True):
    """The state of a job and of one of its attempts (`jobStatus`)."""

    username: str
    state: str
    sub_state: str
    execution_type: str
    retries: int
    retry_details: RetryDetails
    retry_delay_time: int | None
    submission_time: int
    created_time: int
    launched_time: int | None
    completed_time: int | None
    attempt_id: int
    attempt_state: str
    app_id: str
    app_progress: float
    app_tracking_url: str
    app_created_time: int | None
    app_launched_time: int | None
    app_completed_time: int | None
    app_exit_code: int | None
    app_exit_spec: ExitSpecView | None
    app_exit_diagnostics: str | None
    app_exit_messages: ExitMessages | None
    app_exit_trigger_message: str | None
    app_exit_trigger_task_role_name: str | None
    app_exit_trigger_task_index: int | None
    app_exit_type: str | None
    virtual_cluster: str


class Hived(Shape, frozen=True):
    """The HiveD scheduler's data on a task."""

    affinity_group_name: str | None = None
    lazy_preempted: bool | None = None
    lazy_preemption_status: dict[str, Any] | None = None


class TaskAttempt(Shape, frozen=True):
    """One run of one task."""

    attempt_id: int
    attempt_state: str
    current_attempt_created_time: int | None
    current_attempt_launched_time: int | None
    current_attempt_completed_time: int | None
    container_id: str | None
    container_ip: str | None
    container_node_name: str | None
    container_ports: dict[str, str]
    container_gpus: str | None
    container_log: str
    container_exit_code: int | None
    container_exit_spec: ExitSpecView | None
    container_exit_diagnostics: str | None
    hived: Hived | None


class TaskLine(TaskAttempt, frozen=True, kw_only=True):
    """One task within a job's detail (`taskStatuses`), with its latest run."""

    task_index: int
    task_uid: str
    task_state: str
    retries: int
    accountable_retries: int
    created_time: int | None
    launched_time: int | None
    completed_time: int | None


class RoleStanding(Shape, frozen=True):
    """The state of a role itself."""

    name: str


class RoleLines(Shape, frozen=True):
    """One task role of a job's detail."""

    task_role_status: RoleStanding
    task_statuses: tuple[TaskLine, ...]


class JobDetail(Shape, frozen=True):
    """One job, with the state of one of its attempts."""

    debug_id: str
    name: str
    tags: tuple[str, ...]
    job_priority: str | None
    job_status: JobStanding
    task_roles: dict[str, RoleLines]


class TaskDetail(Shape, frozen=True):
    """One task of one attempt of a job, with all its runs (`TaskStatus`)."""

    task_index: int
    task_uid: str
    task_state: str
    retries: int
    accountable_retries: int
    created_time: int | None
    launched_time: int | None
    completed_time: int | None
    username: str
    job_name: str
    job_attempt_id: int
    task_role_name: str
    attempts: tuple[TaskAttempt, ...]


class ExitDiagnostics(Shape, frozen=True):
    """How a job attempt ended, as the history shows it."""

    diagnostics_summary: str
    runtime: Any = None
    launcher: str = ""


class JobAttempt(Shape, frozen=True):
    """One job attempt, as the history shows it."""

    job_name: str
    framework_name: str
    uid: str
    user_name: str
    state: str
    origin_state: str | None
    attempt_index: int
    job_started_time: int | None
    attempt_started_time: int | None
    attempt_completed_time: int | None
    exit_code: int | None
    exit_phrase: str | None
    exit_type: str | None
    exit_diagnostics: ExitDiagnostics | None
    app_exit_trigger_message: str | None
    app_exit_trigger_task_role_name: str | None
    app_exit_trigger_task_index: int | None
    app_exit_spec: ExitSpecView | None
    app_exit_diagnostics: str | None
    app_exit_messages: ExitMessages | None
    total_gpu_number: int
    total_task_number: int
    total_task_role_number: int
    task_roles: dict[str, RoleLines]
    is_latest: bool


class JobEvent(Shape, frozen=True):
    """One event of a job or of one of its tasks."""

    uid: str
    framework_name: str
    pod_uid: str
    taskrole_name: str
    task_name: str
    task_index: int
    type: str
    reason: str
    message: str
    first_timestamp: str
    last_timestamp: str
    count: int
    source_component: str
    source_host: str | None = None


class JobEvents(Shape, frozen=True):
    """The events of a job, latest first."""

    total_count: int
    data: tuple[JobEvent, ...]


class LogLocation(Shape, frozen=True):
    """The URI of one stream of a task's log."""

    name: str
    uri: str


class LogLocations(Shape, frozen=True):
    """The URIs of a task's logs."""

    locations: tuple[LogLocation, ...]
