/** The shapes of `/api/v3` under the portal's names: all of them are generated (`schema.ts`), and some are narrowed here. */

import type * as schema from './schema';

export type {
  AccountUse,
  AlertView as Alert,
  Amount,
  Amounts,
  Applied,
  AppliedDocument,
  AttemptRecord as Attempt,
  Batch,
  BatchLine,
  BudgetView as Budget,
  CacheUse,
  CellDevice,
  CellShare,
  CellState,
  CellTree,
  CellView as Cell,
  Charge,
  ChargePage,
  ClusterUse,
  ChangeView as Change,
  ChannelView as Channel,
  CordonView as Cordon,
  DeviceUse,
  DeviceView as Device,
  DocumentDiff,
  DocumentSummary,
  DocumentView,
  EfficiencyReport,
  EfficiencySum,
  EstimateReport,
  EstimateView as Estimate,
  ForecastView as Forecast,
  EventRecord,
  Figures,
  Explanation,
  FairnessReport,
  FairnessRow,
  FileView,
  GoalOutcome,
  GroupView,
  Hang,
  HangList,
  HealthEntryView as HealthEntry,
  HealthView as Health,
  HourRow,
  GuaranteeFinding as Finding,
  Holding,
  IdleJob,
  JobCache,
  JobEfficiency,
  JobFile,
  JobOutcome,
  JobSummary,
  LedgerLine,
  LedgerView as Ledger,
  LineEntry,
  LoginLink,
  Me,
  Moved,
  NewChannelView as NewChannel,
  NewToken,
  NodeJob,
  NodeView as Node,
  NotificationView as Notification,
  OidcView as Oidc,
  OpenedService,
  PastAlertView as PastAlert,
  ProblemView as Problem,
  ProfileAdvice,
  ProfileComparison,
  ProfileFrame,
  ProfileList,
  ProfilePlace,
  ProfileReport,
  ProfileTop,
  ProfileView,
  QueueEstimates,
  QueueFigures,
  QueueOutcome,
  QueueStanding,
  QueueView as Queue,
  RankScore,
  RankScores,
  RankTimes,
  Readiness,
  ReasonView as Reason,
  ReasonsView as Reasons,
  ReceiptView as Receipt,
  RoleView as Role,
  RoleEfficiency,
  SavedFilter,
  SeriesAnswer,
  SeriesView,
  ServicesView as Services,
  ShadowComparisons,
  ShadowReport,
  ShadowStatus,
  SilenceView as Silence,
  Spread,
  Stay,
  StorageView,
  TaskRecord as Task,
  Timeline,
  TokenView as Token,
  Top,
  UsageReport,
  UsageRow,
  UserChanged,
  UserFairness,
  UserView,
  WaitingLine,
  WhatIfAnswer,
  WhatIfProgress,
  WhatIfRefusal,
  WhatIfStatus,
} from './schema';

export type JobState = schema.JobSummary['state'];
export type Standing = schema.DeviceUse['standing'];
/** Amounts by resource: `devices`, `devices/MODEL`, `cpu` (thousandths), `memory` (bytes). */
export type Shares = schema.QueueStanding['used'];

const LIVE = ['waiting', 'starting', 'running', 'stopping'] as const satisfies readonly JobState[];
const OVER = ['succeeded', 'failed', 'stopped'] as const satisfies readonly JobState[];
export const JOB_STATES: readonly JobState[] = [...LIVE, ...OVER];
export const ENDED: ReadonlySet<string> = new Set(OVER);

/** One page of any list. */
export type Page<Item> = Omit<schema.PageJobSummary, 'items'> & { items: Item[] };

/** A shape whose every part is there: answers have the fields that a request may leave out. */
type Complete<Shape> = Shape extends object ? { [Field in keyof Shape]-?: Complete<Shape[Field]> } : Shape;

export type JobDocument = Complete<schema.JobDocument>;
export type JobDetail = Omit<schema.JobDetail, 'document'> & { document: JobDocument };
export type Validation = Omit<schema.Validation, 'document'> & { document: JobDocument | null };
export type Trial = Omit<schema.Trial, 'document'> & { document: JobDocument };
export type QueueLimits = Complete<schema.QueueLimits>;
/** Limits by resource. */
export type Limits = QueueLimits['limit'];
