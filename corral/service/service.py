"""The service: its components, by concept, for every version of the API and for control's bridge."""

from __future__ import annotations

from typing import Final

from corral.model.policy_shadow import ShadowComparisons, ShadowStatus
from corral.model.what_if_progress import WhatIfQuestions, WhatIfStatus
from corral.service.access.audit_log import AuditLog
from corral.service.alerts.alerts import Alerts
from corral.service.configuration.documents import ConfigurationDocuments
from corral.service.configuration.queue_managers import QueueManagers
from corral.service.context import Context
from corral.service.estimates.estimates import Estimates
from corral.service.jobs.code_archives import CodeArchives
from corral.service.jobs.compile_caches import CompileCaches
from corral.service.jobs.editing import JobEditor
from corral.service.jobs.event_log import Events
from corral.service.jobs.explanations import Explanations
from corral.service.jobs.feasibility import Feasibility
from corral.service.jobs.idle_jobs import IdleJobs
from corral.service.jobs.job_commands import JobCommands
from corral.service.jobs.job_hangs import JobHangs
from corral.service.jobs.job_outputs import JobOutputs
from corral.service.jobs.job_rule import JobRules
from corral.service.jobs.job_services import JobServices
from corral.service.jobs.job_tags import JobTags
from corral.service.jobs.jobs import Jobs
from corral.service.jobs.preflight import Preflights
from corral.service.jobs.receipts import Receipts
from corral.service.jobs.runtime_calls import RuntimeCalls
from corral.service.jobs.source_file import JobFiles
from corral.service.jobs.ssh_access import SshAccess
from corral.service.jobs.submission import Submission
from corral.service.jobs.task_connections import TaskConnections
from corral.service.jobs.tensorboards import TensorBoards
from corral.service.logs.task_logs import TaskLogs
from corral.service.machines.benchmarks import Benchmarks
from corral.service.machines.cordons import Cordons
from corral.service.machines.device_timeline import DeviceTimelines
from corral.service.machines.node_health import NodesHealth
from corral.service.machines.nodes import Nodes
from corral.service.machines.queue_history import QueueHistories
from corral.service.machines.queue_views import Queues
from corral.service.metrics.metrics import Metrics
from corral.service.metrics.series import SeriesReports
from corral.service.people.account_passwords import AccountPasswords
from corral.service.people.accounts import Accounts
from corral.service.people.authentication import Authentication
from corral.service.people.csv_batch import AccountBatches
from corral.service.people.groups import Groups
from corral.service.people.notifications import Notifications
from corral.service.people.openid_sessions import OpenIdSessions
from corral.service.people.saved_filters import SavedFilters
from corral.service.people.sessions import Sessions
from corral.service.people.tokens import Tokens
from corral.service.people.user_secrets import Secrets
from corral.service.profiles.profiles import Profiles
from corral.service.readiness import ReadinessCheck
from corral.service.server_parts import ServerParts
from corral.service.storages.browsing import FolderReader, StorageBrowser
from corral.service.storages.grants import Storages
from corral.service.usage.budgets import Budgets
from corral.service.usage.efficiency import Efficiency
from corral.service.usage.fairness import Fairness
from corral.service.usage.usage import Usage
from corral.service.what_if.kept_questions import KeptQuestions, QuestionBounds, Shape
from corral.service.what_if.policy_shadows import PolicyShadows
from corral.service.what_if.questions import WhatIf
from corral.service.what_if.running_shadow import RunningShadows

WHAT_IF: Final[Shape[WhatIfStatus, WhatIfQuestions]] = Shape(WhatIfStatus, WhatIfQuestions)
_SHADOW: Final[Shape[ShadowStatus, ShadowComparisons]] = Shape(ShadowStatus, ShadowComparisons)
_SHADOW_BOUNDS: Final = QuestionBounds(of_user=3, in_all=20, running=8)


class Service:
    """All operations of a caller, each on the component of its concept.

    A component has the context and the components that it calls; none knows this class. Tenants use the components too,
    and register with `job_rules` and `authentication` what the core asks of them.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        # people
        self.authentication = Authentication(context)
        self.tokens = Tokens(context, self.authentication)
        self.passwords = AccountPasswords(context, self.authentication)
        self.sessions = Sessions(context, self.passwords, self.tokens)
        self.openid_sessions = OpenIdSessions(context, self.sessions, self.tokens, self.authentication)
        self.accounts = Accounts(context, self.passwords, self.authentication)
        self.account_batches = AccountBatches(context, self.authentication, self.sessions)
        self.groups = Groups(context, self.authentication)
        self.secrets = Secrets(context)
        self.notifications = Notifications(context)
        self.saved_filters = SavedFilters(context)
        self.audit_log = AuditLog(context)
        # storages
        self.storages = Storages(context)
        folders = FolderReader(context)
        self.storage_browser = StorageBrowser(context, self.storages, folders)
        # jobs
        self.job_rules = JobRules()
        self.budgets = Budgets(context)
        self.receipts = Receipts(context)
        self.jobs = Jobs(context, self.receipts)
        self.job_commands = JobCommands(context, self.jobs, self.budgets)
        self.job_tags = JobTags(context, self.jobs, self.job_rules)
        self.job_files = JobFiles(context)
        self.job_outputs = JobOutputs(context, self.storages, self.storage_browser, folders)
        self.feasibility = Feasibility(context)
        self.submission = Submission(
            context, self.feasibility, self.storages, self.job_files, self.job_rules, self.budgets
        )
        self.job_editor = JobEditor(context, self.authentication, self.feasibility, self.job_rules, self.budgets)
        self.idle_jobs = IdleJobs(context)
        self.job_hangs = JobHangs(context)
        self.explanations = Explanations(context, self.receipts, self.authentication)
        self.events = Events(context)
        self.runtime_calls = RuntimeCalls(context)
        self.compile_caches = CompileCaches(context, self.authentication)
        self.preflights = Preflights(context)
        self.task_connections = TaskConnections(context)
        self.ssh_access = SshAccess(context, self.authentication)
        self.job_services = JobServices(context, self.authentication)
        self.profiles = Profiles(context)
        self.tensorboards = TensorBoards(context, self.jobs, self.submission)
        self.code_archives = CodeArchives(context)
        self.task_logs = TaskLogs(context)
        # the cluster and its configuration
        self.configuration = ConfigurationDocuments(context)
        self.queue_managers = QueueManagers(context, self.job_commands, self.configuration)
        self.nodes = Nodes(context)
        self.device_timelines = DeviceTimelines(context)
        self.cordons = Cordons(context)
        self.nodes_health = NodesHealth(context)
        self.benchmarks = Benchmarks(context)
        self.queues = Queues(context)
        self.queue_histories = QueueHistories(context)
        self.what_if = WhatIf(context, self.submission, self.feasibility, self.job_editor)
        self.kept_questions = KeptQuestions(context, self.what_if, WHAT_IF)
        self.policy_shadows = KeptQuestions(context, PolicyShadows(context), _SHADOW, _SHADOW_BOUNDS)
        self.running_shadows = RunningShadows(context)
        self.estimates = Estimates(context)
        self.usage = Usage(context)
        self.efficiency = Efficiency(context, self.usage)
        self.fairness = Fairness(context)
        self.alerts = Alerts(context)
        self.readiness = ReadinessCheck(context)
        self.server_parts = ServerParts(context, self.readiness)
        self.metrics = Metrics(context)
        self.series = SeriesReports(context)

    async def close(self) -> None:
        """Close what the components share, and first what tenants registered to be closed."""
        await self.context.close()
