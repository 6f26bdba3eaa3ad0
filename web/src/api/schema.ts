/** Generated from docs/schema/openapi.json; `make docs` writes it anew. */

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * AccountUse
         * @description An account's use of its quotas.
         */
        AccountUse: {
            /** @description Waiting and running tasks. */
            tasks: components["schemas"]["Amount"];
            /** @description Bytes of uploaded code that are stored. */
            codeBytes: components["schemas"]["Amount"];
            /** @description Submissions in the hour that began with the first of them. */
            submissions: components["schemas"]["Amount"];
            /** @description Bytes kept of each stream of a task's log, the newest; 0 is no limit. */
            logBytesOfStream: number;
            /** @description Bytes that a task may have in its working folder, or a pod in all that it writes to its node; 0 is no limit. */
            folderBytesOfTask: number;
            /** @description The account's folder on storages with one folder per user. */
            folder: string;
        };
        /**
         * AddedJobs
         * @description A job file, submitted so many times now.
         */
        AddedJobs: {
            /** @description The text of the file, in any language that `corral submit` reads. */
            job: string;
            /** @default 1 */
            times?: number;
        };
        /**
         * AddedNodes
         * @description So many more nodes that are like a known one (`engine/node`).
         */
        AddedNodes: {
            count: number;
            like: string;
        };
        /**
         * AlertList
         * @description All alerts that the caller may see, those that fire first.
         */
        AlertList: {
            items: components["schemas"]["AlertView"][];
        };
        /**
         * AlertView
         * @description An alert: a condition of a rule that holds for some labels, or held until a short while ago.
         */
        AlertView: {
            /** @description A short name of the alert, the same for the same labels. */
            fingerprint: string;
            /** @description The name of its rule. */
            name: string;
            /**
             * @description `pending`: the condition holds, but not yet for the rule's `for`.
             * @enum {string}
             */
            state: "pending" | "firing" | "resolved";
            /** @description Its label `severity`, such as info, warn, error or fatal. */
            severity: string;
            labels: {
                [key: string]: string;
            };
            annotations: {
                [key: string]: string;
            };
            /** @description The value of the rule's expression; null where the source tells none. */
            value: number | null;
            /** @description When its condition began to hold. */
            since: string;
            firedAt: string | null;
            resolvedAt: string | null;
            /**
             * @description `rules`: Corral's own evaluator; `alertmanager`: the webhook.
             * @enum {string}
             */
            source: "rules" | "alertmanager";
            /** @description The ids of the silences that it is under. */
            silencedBy: string[];
        };
        /**
         * Amount
         * @description An amount in use and its limit; a limit of 0 is none.
         */
        Amount: {
            used: number;
            limit: number;
        };
        /**
         * Amounts
         * @description CPU (thousandths), memory (bytes) and whole devices; slices are not counted in addition.
         */
        Amounts: {
            cpuMillis: number;
            memoryBytes: number;
            devices: number;
        };
        /**
         * Applied
         * @description The result of applying a file of documents; in a dry run, the result that it would have.
         */
        Applied: {
            documents: components["schemas"]["AppliedDocument"][];
            dryRun: boolean;
            /** @description The guarantees that were broken because the caller asked for `preempt`. */
            findings: components["schemas"]["GuaranteeFinding"][];
        };
        /**
         * AppliedDocument
         * @description The result for one document of a file; `action` is `created`, `changed`, `unchanged` or `deleted`.
         */
        AppliedDocument: {
            kind: string;
            name: string;
            /** @description The current revision afterwards; in a dry run the one before. */
            revision: number;
            action: string;
            diff: string;
        };
        /**
         * ArrayView
         * @description The array that a list entry stands for: its name, the tag of its jobs, and job counts by state.
         */
        ArrayView: {
            name: string;
            tag: string;
            states: {
                [key: string]: number;
            };
        };
        /**
         * AttemptRecord
         * @description One run of one task, in any attempt of the job.
         */
        AttemptRecord: {
            id: string;
            jobAttempt: number;
            role: string;
            index: number;
            attempt: number;
            node: string;
            devices: number[];
            host: string;
            ports: {
                [key: string]: number[];
            };
            startedAt: string | null;
            endedAt: string | null;
            exit: components["schemas"]["ExitView"] | null;
        };
        /**
         * AuditRecord
         * @description One authorization decision about a call that changes something, or that was refused.
         */
        AuditRecord: {
            seq: number;
            at: string;
            actor: string;
            action: string;
            resource: string;
            rule: string;
            allowed: boolean;
            detail: Record<string, never>;
        };
        /**
         * Batch
         * @description The effect of an account list, which is applied wholly or not at all.
         */
        Batch: {
            lines: components["schemas"]["BatchLine"][];
            /** @description Whether it was stored; never in a dry run. */
            applied: boolean;
        };
        /**
         * BatchLine
         * @description The effect of one line of an account list.
         */
        BatchLine: {
            line: number;
            name: string;
            /** @enum {string} */
            action: "create" | "change" | "unchanged" | "refused";
            /** @description In words, such as `role: user to admin`. */
            changes: string[];
            /** @description Why it is refused. */
            message: string;
            /** @description The token of a new account's one-time sign-in link, if links were requested. */
            link: string;
        };
        /**
         * BenchmarkChange
         * @description The medians of a metric in two runs.
         */
        BenchmarkChange: {
            metric: string;
            unit: string;
            before: number | null;
            after: number | null;
            /** @description The change for the better as a part of the value before; negative is worse. */
            gain: number | null;
        };
        /**
         * BenchmarkComparison
         * @description Two runs beside each other, the largest loss first.
         */
        BenchmarkComparison: {
            before: components["schemas"]["BenchmarkRunView"];
            after: components["schemas"]["BenchmarkRunView"];
            changes: components["schemas"]["BenchmarkChange"][];
            ways: components["schemas"]["BenchmarkWays"][];
        };
        /**
         * BenchmarkHistory
         * @description What runs measured of one metric, oldest first.
         */
        BenchmarkHistory: {
            metric: string;
            unit: string;
            largerIsBetter: boolean;
            points: components["schemas"]["BenchmarkPoint"][];
            /** @description Whether there are older values that are not told. */
            cut: boolean;
        };
        /**
         * BenchmarkMetric
         * @description A measurement over all nodes.
         */
        BenchmarkMetric: {
            metric: string;
            unit: string;
            largerIsBetter: boolean;
            nodes: number;
            least: number;
            median: number;
            most: number;
            /** @description Nodes with findings. */
            slow: number;
        };
        /**
         * BenchmarkNodeResult
         * @description What was measured on one node: the value of each metric, such as `cpu-stream/triad_bw:0`.
         */
        BenchmarkNodeResult: {
            node: string;
            metrics: {
                [key: string]: number;
            };
            /** @default  */
            sku?: string;
        };
        /**
         * BenchmarkOverview
         * @description The last results of all nodes; nodes with findings come first.
         */
        BenchmarkOverview: {
            nodes: components["schemas"]["BenchmarkedNode"][];
            metrics: components["schemas"]["BenchmarkMetric"][];
            /** @description The newest runs, newest first. */
            runs: components["schemas"]["BenchmarkRunView"][];
            /** @description For how long results are kept. */
            days: number;
        };
        /**
         * BenchmarkPoint
         * @description A value of a measurement on a node, in one run.
         */
        BenchmarkPoint: {
            node: string;
            sku: string;
            run: string;
            at: string;
            value: number;
            rank: number;
            /** @description Whether it breaks a rule beside the baseline of its SKU of now. */
            slow: boolean;
        };
        /**
         * BenchmarkResults
         * @description Results of a suite to keep.
         */
        BenchmarkResults: {
            results: components["schemas"]["BenchmarkNodeResult"][];
            /** @default  */
            suite?: string;
            /** @default [] */
            problems?: string[];
            /**
             * @description The run to which they are added; "" begins a new one.
             * @default
             */
            run?: string;
        };
        /**
         * BenchmarkRunResults
         * @description What a kept run measured, by node: of a large run a part.
         */
        BenchmarkRunResults: {
            run: components["schemas"]["BenchmarkRunView"];
            results: components["schemas"]["BenchmarkNodeResult"][];
            /** @description The figure at which the next part begins; null after the last one. */
            nextOffset: number | null;
        };
        /**
         * BenchmarkRunView
         * @description A run of a benchmark suite.
         */
        BenchmarkRunView: {
            id: string;
            at: string;
            user: string;
            suite: string;
            nodes: number;
            figures: number;
            /** @description What failed, in one sentence each. */
            problems: string[];
        };
        /**
         * BenchmarkStanding
         * @description The last value of a measurement on a node, beside its baseline and its data sheet.
         */
        BenchmarkStanding: {
            node: string;
            sku: string;
            metric: string;
            /** @description The process or device with the worst value, or -1. */
            rank: number;
            value: number;
            unit: string;
            largerIsBetter: boolean;
            at: string;
            run: string;
            /** @description The median of the last values of all nodes of its SKU; null where no other node has it. */
            baseline: number | null;
            /** @description Other nodes of its SKU that have the measurement. */
            alike: number;
            /** @description The difference from the baseline as a part of it. */
            change: number | null;
            /** @description What the data sheet of its device promises. */
            expected: number | null;
            /** @description The least value of a healthy device of the model. */
            least: number | null;
            /** @description The data sheet. */
            source: string;
            /** @description Which rules it breaks; empty for a good value. */
            findings: string[];
        };
        /**
         * BenchmarkStandings
         * @description Last values, those with findings first.
         */
        BenchmarkStandings: {
            items: components["schemas"]["BenchmarkStanding"][];
        };
        /**
         * BenchmarkWays
         * @description Every way between some nodes, or between the devices of one, in two runs: a row for each end from which it leads.
         */
        BenchmarkWays: {
            benchmark: string;
            /** @description The node whose devices they are; "" for ways between nodes. */
            node: string;
            unit: string;
            largerIsBetter: boolean;
            /** @description The nodes or devices, for rows and for columns. */
            names: string[];
            before: (number | null)[][];
            after: (number | null)[][];
            /** @description The change for the better as a part of the value before; negative is worse. */
            gain: (number | null)[][];
        };
        /**
         * BenchmarkedNode
         * @description A node with results.
         */
        BenchmarkedNode: {
            node: string;
            sku: string;
            /** @description When it was measured last. */
            at: string;
            measurements: number;
            /** @description Measurements with findings. */
            slow: number;
            /** @description The first of the findings. */
            findings: string[];
        };
        /**
         * BudgetBody
         * @description A budget of device-hours.
         */
        BudgetBody: {
            deviceHours: number;
            /**
             * @description The part of it from which submissions are warned.
             * @default 0.8
             */
            warnAt?: number;
            /**
             * @description What becomes of jobs that run while it is used up: `warn` their owners, or `hold` them.
             * @default warn
             */
            whenUsedUp?: components["schemas"]["WhenUsedUp"];
        };
        /**
         * BudgetList
         * @description Budgets by kind, name and window.
         */
        BudgetList: {
            items: components["schemas"]["BudgetView"][];
        };
        /**
         * BudgetView
         * @description A budget in its present window, in device-hours.
         */
        BudgetView: {
            /** @description `queue` or `user`. */
            kind: string;
            name: string;
            /** @description `day`, `week` or `month`, in UTC; weeks begin on Monday. */
            window: string;
            begin: string;
            end: string;
            /** @description What may be used in this window, with what was added. */
            allowed: number;
            /** @description What may be used in every window. */
            deviceHours: number;
            used: number;
            /** @description What live jobs may still use in this window, by their maxDuration. */
            promised: number;
            left: number;
            /** @description The part of it from which submissions are warned. */
            warnAt: number;
            /** @description `open`, `warned` or `used-up`. */
            state: string;
            topUps: components["schemas"]["TopUpView"][];
            /** @description When it was last set. */
            setAt: string;
            setBy: string;
            /**
             * @description What becomes of jobs that run while it is used up: `warn` their owners, or `hold` them.
             * @enum {string}
             */
            whenUsedUp: "warn" | "hold";
        };
        /**
         * CacheBundle
         * @description One bundle of compiled code; its content never changes.
         */
        CacheBundle: {
            id: string;
            /** @enum {string} */
            share: "job" | "user" | "group";
            /** @description The job's id, the user or the group that shares it. */
            of: string;
            key: string;
            /** @description What the key is made of: image, versions, devices, driver, processor. */
            facts: {
                [key: string]: string;
            };
            /** @description The SHA-256 of its bytes. */
            digest: string;
            size: number;
            files: number;
            /** @description Whose task published it. */
            user: string;
            job: string;
            publishedAt: string;
            usedAt: string;
            /** @description Tasks that it was given to. */
            uses: number;
        };
        /**
         * CacheList
         * @description Bundles of compiled code, the last used ones first, and what the caller's own take of the quota.
         */
        CacheList: {
            items: components["schemas"]["CacheBundle"][];
            bytes: number;
            /** @description The quota in bytes; 0 is no limit. */
            mostBytes: number;
        };
        /**
         * CacheOffer
         * @description The bundle for a task, and the key under which the task may publish another one.
         */
        CacheOffer: {
            key: string;
            /** @description "" is no bundle. */
            digest: string;
            size: number;
            /** @description The largest bundle that may be published. */
            mostBytes: number;
            /** @description Why the task has no cache; "" if it has one. */
            refusal: string;
        };
        /**
         * CacheUse
         * @description What one attempt of a task made of the cache.
         */
        CacheUse: {
            attempt: string;
            role: string;
            index: number;
            at: string;
            key: string;
            /** @description Whether a bundle was restored. */
            hit: boolean;
            /** @description What the key is made of. */
            facts: {
                [key: string]: string;
            };
            /** @description The bundle that was found; "" is none. */
            digest: string;
            bytes: number;
            files: number;
            restoreSeconds: number | null;
            /** @description Files that the task compiled itself; null: not known yet. */
            newFiles: number | null;
            /** @description From the command's start to the first step that it reported; null: none was reported. */
            firstStepSeconds: number | null;
            /** @description The same of the last task of this command that had no bundle; null: none is known. */
            coldSeconds: number | null;
            /** @description `coldSeconds` without the seconds of restore and first step; null where one of them is not known. */
            savedSeconds: number | null;
            /** @description The bundle that it published; "" is none. */
            published: string;
            publishedBytes: number;
            /** @description Why the bundle was not taken; "" if it was. */
            refused: string;
        };
        /**
         * CacheUseBody
         * @description What a runtime measured: files and seconds of the restore, files that are new, seconds to the first step.
         */
        CacheUseBody: {
            attempt: string;
            /** @default 0 */
            files?: number;
            /** @default null */
            restoreSeconds?: number | null;
            /** @default null */
            newFiles?: number | null;
            /** @default null */
            firstStepSeconds?: number | null;
            /** @default  */
            refused?: string;
        };
        /**
         * CellDevice
         * @description One device of a cell; `state` is `free`, `used`, `leaving`, `unhealthy` or `closed` (its node takes no tasks).
         */
        CellDevice: {
            index: number;
            id: string;
            kind: string;
            model: string;
            /** @enum {string} */
            state: "free" | "used" | "leaving" | "unhealthy" | "closed";
            /** @description Why it is unhealthy or closed. */
            reason: string;
            /** @description The queue that its cell is bound to now. */
            owner: string;
            pinned: boolean;
            uses: components["schemas"]["DeviceUse"][];
        };
        /**
         * CellShare
         * @description The cells of one type that a queue owns on an engine, as counts of cells.
         *
         *     `owned` = `bound` + `free` + `lent` + `missing`. Bound cells hold its jobs (or are pinned). Free ones could be bound
         *     at once, and lent ones after their guests left. Missing ones could not even then (bad or absent hardware).
         */
        CellShare: {
            engine: string;
            level: string;
            /** @description "" if its devices are of several models. */
            model: string;
            /** @description Devices per cell; a slice is a fraction of a device. */
            devices: number;
            owned: number;
            bound: number;
            free: number;
            lent: number;
            missing: number;
        };
        /**
         * CellState
         * @description One cell with its device counts, owners and users, and the cells in it to the requested depth.
         */
        CellState: {
            /** @description Its id for the parameter `under`: `ENGINE|LEVEL:NAME`; "" for the whole cluster. */
            id: string;
            level: string;
            name: string;
            devices: number;
            /** @description Devices that can be allocated now. */
            free: number;
            used: number;
            /** @description Devices whose tasks were told to end. */
            leaving: number;
            /** @description Devices used by guests. */
            guests: number;
            unhealthy: number;
            /** @description Devices of nodes that take no new tasks. */
            closed: number;
            /** @description By queue, the number of its devices bound to that queue. */
            owners: {
                [key: string]: number;
            };
            /** @description The queue that the whole cell is bound to. */
            owner: string;
            pinned: boolean;
            /** @description Whether its type is owned by some queue and no bound cell overlaps it, so that it could be bound. */
            whole: boolean;
            /** @description By queue, the number of its devices in use; tasks with a fraction of a device count that fraction. */
            queues: {
                [key: string]: number;
            };
            /**
             * @description Of a node or an engine: `cordoned`, `not-ready` or `unknown`; "" if it is healthy.
             * @enum {string}
             */
            state: "" | "cordoned" | "not-ready" | "unknown";
            reason: string;
            /** @description The number of cells or devices directly in it; `cells` and `holds` may have fewer: query with `under`. */
            inside: number;
            cells: components["schemas"]["CellState"][];
            holds: components["schemas"]["CellDevice"][];
        };
        /**
         * CellTree
         * @description A part of the cell tree; pass `next` as `after` for more children of the requested cell.
         */
        CellTree: {
            at: string;
            cell: components["schemas"]["CellState"];
            next: string | null;
        };
        /**
         * CellView
         * @description One cell of the cluster's tree: its level (root, engine, rack, node, numa, …), its name and its content.
         */
        CellView: {
            level: string;
            name: string;
            devices: number;
            free: number;
            ready: boolean;
            cells: components["schemas"]["CellView"][];
            /** @description The devices directly in it. */
            holds: components["schemas"]["DeviceView"][];
        };
        /**
         * ChangeView
         * @description One change that would start the job now, checked with the scheduler itself.
         */
        ChangeView: {
            /** @description The field of the job file, or of a queue (`Queue/NAME: limit.devices`). */
            path: string;
            from: string | number;
            to: string | number;
            message: string;
        };
        /**
         * ChannelChange
         * @description A change of what is told on a channel; None leaves a field as it is.
         */
        ChannelChange: {
            /** @default null */
            events?: ("started" | "succeeded" | "failed" | "stopped" | "retried" | "preempted" | "idle" | "hung" | "ended")[] | null;
            /** @default null */
            waitingSeconds?: number | null;
            /** @default null */
            jobs?: string | null;
        };
        /**
         * ChannelView
         * @description A channel as its owner sees it.
         */
        ChannelView: {
            name: string;
            /** @enum {string} */
            kind: "mail" | "webhook" | "slack" | "teams" | "apprise";
            /** @description Without its secret parts. */
            address: string;
            verified: boolean;
            events: ("started" | "succeeded" | "failed" | "stopped" | "retried" | "preempted" | "idle" | "hung" | "ended")[];
            waitingSeconds: number;
            jobs: string;
            createdAt: string;
        };
        /**
         * Charge
         * @description The use of one user in one queue, on a day in UTC or the part of it that was asked for.
         */
        Charge: {
            begin: string;
            end: string;
            user: string;
            queue: string;
            /** @description The device model; "" is none or unknown. */
            model: string;
            /** @description `device-hours`, `cpu-hours` or `memory-gib-hours`; the latter two as asked for. */
            meter: string;
            /** @description Hours. */
            quantity: number;
            /** @description The part of device-hours in attempts that came to nothing. */
            lost: number;
            /** @description The price of an hour; 0 where no rate has one. */
            unitPrice: number;
            cost: number;
            /** @description The part of the hours that was used, as far as it was measured; it is not priced. */
            used: number;
            /** @description The part of device-hours in which a device's use was below 5 %, in attempts that did not come to nothing. */
            idle: number;
            /** @description Of device-hours the energy, where the devices tell their power. */
            energyKwh: number;
        };
        /**
         * ChargePage
         * @description The charges of some whole days; `next` is the time from which to go on, "" after the last.
         */
        ChargePage: {
            /** @description By ISO 4217; `XXX` where there are no prices. */
            currency: string;
            items: components["schemas"]["Charge"][];
            next: string;
        };
        /**
         * CheckpointBody
         * @description A checkpoint: the task attempt that saved it, and its age in seconds (at most a day).
         */
        CheckpointBody: {
            attempt: string;
            /** @default 0 */
            ageSeconds?: number;
        };
        /**
         * ClusterUse
         * @description How one cluster is used beside Corral.
         */
        ClusterUse: {
            engine: string;
            queues: components["schemas"]["SharedQueue"][];
            /** @description The ones that use most memory first. */
            applications: components["schemas"]["OtherApplication"][];
            /** @description Further applications that are not listed. */
            leftOut: number;
            /** @description What all applications that are not Corral's use. */
            others: components["schemas"]["Amounts"];
            /** @description What Corral's own applications use, the masters of its services among them. */
            corral: components["schemas"]["Amounts"];
            /** @description Why the cluster could not be asked; "" when it answered. */
            trouble: string;
        };
        /**
         * CodeGiven
         * @description The code that a channel was sent.
         */
        CodeGiven: {
            code: string;
        };
        /**
         * CordonBody
         * @description The reason for a cordon.
         */
        CordonBody: {
            /** @default  */
            why?: string;
        };
        /**
         * CordonView
         * @description A cordon in the API: its author, reason and start; `drain` is "", `now` or `after-jobs`.
         */
        CordonView: {
            by: string;
            why: string;
            at: string;
            /** @enum {string} */
            drain: "" | "now" | "after-jobs";
            graceSeconds: number | null;
        };
        /**
         * Counts
         * @description How many decisions both made, or one of them alone.
         */
        Counts: {
            /** @description Made by both at about the same time. */
            alike: number;
            /** @description Those of the alike that placed tasks on other nodes. */
            elsewhere: number;
            onlyInForce: number;
            onlyCandidate: number;
        };
        /**
         * DeviceScore
         * @description The score of one device.
         */
        DeviceScore: {
            device: number;
            score: number;
        };
        /**
         * DeviceStay
         * @description A job on devices of one node for a time.
         */
        DeviceStay: {
            /** @description Its id. */
            job: string;
            name: string;
            user: string;
            queue: string;
            node: string;
            /** @description Indexes of the node's devices. */
            devices: number[];
            begin: string;
            /** @description Null: it still runs, or an expected one ends after the forecast does. */
            end: string | null;
        };
        /**
         * DeviceTimeline
         * @description What ran on the devices of some nodes, and what is expected to run there.
         */
        DeviceTimeline: {
            /** @description When it was asked for: the past ends here. */
            at: string;
            begin: string;
            end: string;
            /** @description By name. */
            nodes: components["schemas"]["TimelineNode"][];
            /** @description Attempts of tasks, the latest first. Those of jobs that were removed are not known any more. */
            past: components["schemas"]["DeviceStay"][];
            pastLeftOut: number;
            /** @description From the first course of the forecast, the earliest first; it goes on with what runs now. */
            expected: components["schemas"]["DeviceStay"][];
            expectedLeftOut: number;
            /** @description How far the forecast looks ahead; null without one. */
            forecastUntil: string | null;
            /** @description Why there is no forecast; "" where there is one, or where nothing of the time is to come. */
            trouble: string;
            next: string | null;
        };
        /**
         * DeviceUse
         * @description One task on a device; `share` is its fraction of the device's computing power in percent, 100 for the whole.
         */
        DeviceUse: {
            job: string;
            name: string;
            user: string;
            queue: string;
            role: string;
            index: number;
            priority: number;
            /**
             * @description `guaranteed` in a cell of its queue, `guest` outside; "" on an engine without owned cells.
             * @enum {string}
             */
            standing: "guaranteed" | "guest" | "";
            /** @description Whether it was told to end. */
            leaving: boolean;
            share: number;
        };
        /**
         * DeviceView
         * @description One accelerator of a node, and the tasks that hold it.
         */
        DeviceView: {
            index: number;
            id: string;
            kind: string;
            model: string;
            memoryBytes: number;
            healthy: boolean;
            healthReason: string;
            described: boolean;
            cells: {
                [key: string]: string;
            };
            node: string;
            /** @description The index of the device that it is a slice of; -1 is none. */
            parent: number;
            /** @description Whether it is healthy and can be allocated whole: no fraction, slice or parent of it is in use. */
            free: boolean;
            job: components["schemas"]["Holding"] | null;
            /** @description The other tasks that hold fractions of it. */
            others: components["schemas"]["Holding"][];
        };
        /**
         * Difference
         * @description A decision that one of both made alone; with both times, one that they made at different times.
         */
        Difference: {
            /** @description `start`, `preempt` or `resize`. */
            kind: string;
            job: string;
            name: string;
            user: string;
            queue: string;
            /** @description When it was made; None: it was not. */
            inForce: string | null;
            candidate: string | null;
            /** @description Why a job still waited under the other one, or why it gave devices back; "" if that is not known. */
            why: string;
        };
        /**
         * DocumentDiff
         * @description The unified diff of two revisions; "" if they are equal.
         */
        DocumentDiff: {
            kind: string;
            name: string;
            /** @description The earlier revision; 0 for none. */
            before: number;
            /** @description The later revision; 0 for one that is not stored. */
            after: number;
            diff: string;
        };
        /**
         * DocumentSummary
         * @description One revision of a document, as lists and histories show it.
         */
        DocumentSummary: {
            kind: string;
            name: string;
            revision: number;
            at: string;
            actor: string;
            note: string;
            deleted: boolean;
        };
        /**
         * DocumentView
         * @description One revision with the document itself; `text` is the same document as YAML.
         */
        DocumentView: {
            kind: string;
            name: string;
            revision: number;
            at: string;
            actor: string;
            note: string;
            deleted: boolean;
            document: Record<string, never>;
            text: string;
        };
        /**
         * DrainBody
         * @description The options of a drain: `afterJobs` waits for the node's jobs to end by themselves.
         */
        DrainBody: {
            /** @default  */
            why?: string;
            /** @default null */
            graceSeconds?: number | null;
            /** @default false */
            afterJobs?: boolean;
        };
        /**
         * EditView
         * @description The result of an edit of a waiting job; `changes` is empty if the job had these values already.
         */
        EditView: {
            id: string;
            name: string;
            changes: components["schemas"]["EditedField"][];
            /** @description Whether this was a dry run, which stores nothing. */
            dryRun: boolean;
        };
        /**
         * EditedField
         * @description One field that an edit changes, with both values as people write them.
         */
        EditedField: {
            /** @description `priority`, `maxDuration` or `queue`. */
            field: string;
            before: string;
            after: string;
        };
        /**
         * EfficiencyReport
         * @description The jobs of a user, a queue or everybody from one time to another.
         */
        EfficiencyReport: {
            begin: string;
            end: string;
            total: components["schemas"]["EfficiencySum"];
            /** @description The users with the most device-seconds first. */
            users: components["schemas"]["EfficiencySum"][];
            /** @description The jobs with the most device-seconds first. */
            items: components["schemas"]["JobEfficiency"][];
            /** @description Further jobs, which are in the sums of device-seconds alone. */
            leftOut: number;
        };
        /**
         * EfficiencySum
         * @description The sum over the jobs of one user, or over all.
         */
        EfficiencySum: {
            /** @description The user; "" is everybody. */
            key: string;
            deviceSeconds: number;
            lostDeviceSeconds: number;
            /** @description Device-seconds of roles whose use was measured, of the jobs that are listed. */
            measuredDeviceSeconds: number;
            /** @description How much of those was used. */
            usedDeviceSeconds: number;
        };
        /**
         * Entity
         * @description An impacted component.
         */
        Entity: {
            /** @default  */
            entityType?: string;
            /** @default  */
            entityValue?: string;
        };
        /**
         * ErrorShape
         * @description The body of every refusal.
         */
        ErrorShape: {
            /** @description A stable error code in kebab case, for programs. */
            code: string;
            /** @description One sentence for people, which says how to proceed. */
            message: string;
        };
        /**
         * EstimateReport
         * @description How good the estimates of the last days were, by queue.
         */
        EstimateReport: {
            at: string;
            days: number;
            /** @description By name; only queues with estimates. */
            queues: components["schemas"]["QueueEstimates"][];
            /** @description All of these queues together. */
            total: components["schemas"]["QueueEstimates"];
        };
        /**
         * EstimateView
         * @description When a waiting job is likely to start: the time (`at`), its certainty (`basis`) and its grounds (`message`).
         */
        EstimateView: {
            basis: string;
            message: string;
            at: string | null;
            /** @description Seconds from now. */
            seconds: number | null;
            /** @description The last jobs that must end first, or those that have no known end; at most five. */
            after: components["schemas"]["JobSummary"][];
            /** @description The time by which it starts in a tenth of the forecast's courses. Null: none is known. */
            p10: string | null;
            /** @description The median; `at` of an expected start. `at-latest` counts also the grace of jobs that use all their time. */
            p50: string | null;
            p90: string | null;
            /** @description Null: it is sure without one, or there is none. */
            forecast: components["schemas"]["ForecastView"] | null;
        };
        /**
         * EventRecord
         * @description One event of a job; `seq` follows commit order, so a stream resumed after a `seq` skips nothing.
         */
        EventRecord: {
            seq: number;
            job: string;
            at: string;
            kind: string;
            actor: string;
            message: string;
            role: string;
            index: number;
            attempt: string;
            data: Record<string, never>;
        };
        /**
         * ExitView
         * @description How an attempt ended (`corral.model.outcome.Completion`).
         */
        ExitView: {
            code: number;
            phrase: string;
            class: string;
            message: string;
        };
        /**
         * Explanation
         * @description Why a job is in its state, as one sentence and in parts.
         */
        Explanation: {
            job: string;
            state: string;
            message: string;
            reasons: components["schemas"]["ReasonsView"] | null;
            ahead: components["schemas"]["JobSummary"][];
            estimate: components["schemas"]["EstimateView"] | null;
            /** @description The smallest changes that would start it now, at most three, the smallest first. */
            changes: components["schemas"]["ChangeView"][];
            /** @description Its preemptions from which it has not come back yet. */
            receipts: components["schemas"]["ReceiptView"][];
        };
        /**
         * ExtendBody
         * @description Why the job needs its devices although it does not use them.
         */
        ExtendBody: {
            reason: string;
        };
        /**
         * FairnessReport
         * @description The fairness of a week, which begins on Monday in UTC.
         */
        FairnessReport: {
            begin: string;
            end: string;
            items: components["schemas"]["FairnessRow"][];
            /** @description Jain's index of the ratios, from 1/n (one queue got all) to 1 (all ratios are equal); null without a ratio. */
            jain: number | null;
            worstFinishTimeRatio: number | null;
            waitP50: number | null;
            waitP95: number | null;
            /** @description The worst off first, at most 1,000. */
            users: components["schemas"]["UserFairness"][];
            /** @description The worst off first: ten of everybody's, or at most 1,000 of one user's. */
            jobs: components["schemas"]["JobFairness"][];
            /** @description What the records do not tell. */
            unknown: string[];
        };
        /**
         * FairnessRow
         * @description One queue at the top of the tree; the queues below it count for it.
         */
        FairnessRow: {
            queue: string;
            /** @description Device-seconds. */
            owed: number;
            /** @description Device-seconds that its jobs held. */
            got: number;
            /** @description What it got divided by what it was owed; null where nothing was owed. */
            ratio: number | null;
            /** @description Jobs that started in the week. */
            started: number;
            /** @description Seconds from submission to start; null where no job started. */
            waitP50: number | null;
            waitP95: number | null;
            /** @description Of its jobs that succeeded in the week: seconds from submission to end, by those that it needed its devices for. */
            worstFinishTimeRatio: number | null;
            worstJob: string;
        };
        /**
         * Figures
         * @description One queue, or all of them, under one of both.
         */
        Figures: {
            started: number;
            /** @description Of the jobs that started; None: none did. */
            waitP50: number | null;
            waitP95: number | null;
            preempted: number;
            /** @description The devices in use. */
            devices: number;
            /** @description Jobs that wait at the end. */
            waiting: number;
        };
        /**
         * FilePreview
         * @description What a page shows of a file: a part of its text, some rows of its table, or that it is a picture.
         */
        FilePreview: {
            /**
             * @description `other` is not shown.
             * @enum {string}
             */
            kind: "text" | "table" | "picture" | "other";
            size: number;
            text: string;
            columns: string[];
            rows: string[][];
            /** @description Whether the file has more than is shown. */
            cut: boolean;
        };
        /**
         * FileView
         * @description One entry of a storage's folder.
         */
        FileView: {
            name: string;
            /**
             * @description A link is never followed.
             * @enum {string}
             */
            kind: "folder" | "file" | "link" | "other";
            size: number;
            changedAt: string;
        };
        /**
         * FolderDisk
         * @description The disk that has the task's folder, in bytes.
         */
        FolderDisk: {
            bytes: number;
            free: number;
        };
        /**
         * ForecastView
         * @description A forecast: the scheduler's state, played forward in courses that differ in drawn run times.
         *
         *     Forecasts and what-if answers of equal revision look at the same state at the same time; those of equal seeds too draw
         *     the same courses.
         */
        ForecastView: {
            /** @description The time of that state. */
            at: string;
            revision: string;
            /** @description How many courses were drawn, from seed 0 on. */
            seeds: number;
        };
        /**
         * GoalOutcome
         * @description The least that reaches a goal. The rest of the answer is about this least, or about the most that was tried.
         */
        GoalOutcome: {
            goal: string;
            vary: string;
            reached: boolean;
            /** @description Nodes to add, or the value of the queue's field; null: nothing that was tried reaches the goal. */
            least: number | null;
            /** @description Whether the search came to its end; else less may do as well, or more may reach it. */
            complete: boolean;
            /** @description Of the measured values: `seconds` or `number`. */
            unit: string;
            /** @description The outcome as a sentence. */
            says: string;
            /** @description In the order in which they were tried. */
            tries: components["schemas"]["GoalTry"][];
        };
        /**
         * GoalTry
         * @description One value that the search for a goal tried.
         */
        GoalTry: {
            value: number;
            held: boolean;
            /** @description The left side of the goal; null: never, or the value is refused. */
            measured: number | null;
            /** @description Its right side. */
            wanted: number | null;
            /** @description Why documents with this value are refused; "" if they are not. */
            refused: string;
        };
        /**
         * GrantWords
         * @description Queues and storages to grant or to revoke; `*` means all.
         */
        GrantWords: {
            /** @default [] */
            queues?: string[];
            /**
             * @description Queues that the members manage.
             * @default []
             */
            manages?: string[];
            /** @default [] */
            storages?: string[];
        };
        /**
         * GroupChangeWords
         * @description A change of a group, applied as a whole or not at all.
         */
        GroupChangeWords: {
            /**
             * @default {
             *       "queues": [],
             *       "manages": [],
             *       "storages": []
             *     }
             */
            grant?: components["schemas"]["GrantWords"];
            /**
             * @default {
             *       "queues": [],
             *       "manages": [],
             *       "storages": []
             *     }
             */
            revoke?: components["schemas"]["GrantWords"];
            /**
             * @description Accounts to add as members.
             * @default []
             */
            add?: string[];
            /** @default [] */
            remove?: string[];
            /** @default null */
            description?: string | null;
            /**
             * @description The group's name at the sign-in provider.
             * @default null
             */
            externalName?: string | null;
            /**
             * @description Whether its members are administrators.
             * @default null
             */
            admin?: boolean | null;
            /**
             * @description The highest priority of its members' jobs; "" removes the bound.
             * @default null
             */
            maxPriority?: number | "" | null;
        };
        /**
         * GroupView
         * @description One group, its members and its grants; `*` is all.
         */
        GroupView: {
            name: string;
            description: string;
            externalName: string;
            queues: string[];
            /** @description The queues that its members manage. */
            manages: string[];
            storages: string[];
            /** @description Whether its members are administrators. */
            admin: boolean;
            /** @description The first thousand, by name. */
            members: string[];
            memberCount: number;
            /** @description The highest priority of its members' jobs; null sets no bound. */
            maxPriority: number | null;
        };
        /**
         * GuaranteeFinding
         * @description A guarantee that a change would break: `queue` needs `needed` cells of `level`, and `available` exist.
         */
        GuaranteeFinding: {
            message: string;
            queue: string;
            level: string;
            model: string;
            needed: number;
            available: number;
            /** @description Whether the change is possible by preempting the jobs that stand in its way. */
            preemptible: boolean;
        };
        /**
         * Hang
         * @description One time that a job hung.
         */
        Hang: {
            /** @description When it was found. */
            at: string;
            /** @description How long it had shown no progress. */
            silentSeconds: number;
            /** @description What its ranks did, in one sentence. */
            why: string;
            /** @description The tasks that the others wait for; none if all are alike. */
            odd: string[];
            /** @description The collective in which the odd tasks stand, or were last. */
            collective: string;
            /** @description The number of that collective in its group by the flight recorder; 0 is not known. */
            number: number;
            /** @description The line of the program where they stand. */
            place: string;
            /**
             * @description What was done about it.
             * @enum {string}
             */
            action: "warn" | "restart" | "suspend";
            /** @description The name of the bundle of stacks, logs and figures; "" if it could not be kept. */
            bundle: string;
            bytes: number;
        };
        /**
         * HangList
         * @description The times that a job hung, the latest first.
         */
        HangList: {
            items: components["schemas"]["Hang"][];
        };
        /**
         * HealthBody
         * @description What is done with a node: `repairing` takes it over, `validate` has it checked, `healthy` ends the suspicion.
         */
        HealthBody: {
            /** @enum {string} */
            act: "repairing" | "validate" | "healthy";
            /** @default  */
            why?: string;
        };
        /**
         * HealthEntryView
         * @description One entry of a node's history in the API.
         */
        HealthEntryView: {
            at: string;
            /** @enum {string} */
            what: "start-failed" | "node-exit" | "claimed-exit" | "vanished" | "xid" | "ecc" | "device" | "slow-task" | "hang" | "check-failed" | "throttled" | "pcie-errors" | "link-flaps" | "clock-skew" | "full-disk" | "read-only-disk" | "disk-errors" | "hanging-mount" | "health-event" | "moved";
            reason: string;
            device: number | null;
            /** @description What it added to the score; 0: too many nodes had the same trouble at once. */
            weight: number;
            job: string;
            before: string;
            after: string;
            by: string;
        };
        /**
         * HealthEvent
         * @description One event; fields that are not read are left out.
         */
        HealthEvent: {
            nodeName: string;
            /** @default  */
            agent?: string;
            /** @default  */
            checkName?: string;
            /** @default false */
            isFatal?: boolean;
            /** @default false */
            isHealthy?: boolean;
            /** @default  */
            message?: string;
            /** @default [] */
            errorCode?: string[];
            /** @default [] */
            entitiesImpacted?: components["schemas"]["Entity"][];
            /** @default {} */
            metadata?: {
                [key: string]: string;
            };
            /** @default null */
            quarantineOverrides?: components["schemas"]["Overrides"] | null;
        };
        /**
         * HealthEvents
         * @description NVSentinel's list of events.
         */
        HealthEvents: {
            events: components["schemas"]["HealthEvent"][];
        };
        /**
         * HealthEventsTaken
         * @description How many signs events gave.
         */
        HealthEventsTaken: {
            /** @description Events of healthy components give none. */
            signs: number;
        };
        /**
         * HealthView
         * @description The health of a node in the API.
         */
        HealthView: {
            node: string;
            /** @enum {string} */
            state: "healthy" | "suspected" | "cordoned" | "repairing" | "validating";
            /** @description The sum of all scores of the node and its devices, now. */
            score: number;
            since: string | null;
            by: string;
            why: string;
            /** @description The devices with a score of their own. */
            devices: components["schemas"]["DeviceScore"][];
            /** @description The validation job that runs or ran last; "" is none. */
            job: string;
        };
        /**
         * Holding
         * @description The task that holds a device or, with `share`, a fraction of it; null is the whole device.
         */
        Holding: {
            id: string;
            name: string;
            user: string;
            role: string;
            index: number;
            share: components["schemas"]["ShareView"] | null;
        };
        /**
         * HourRow
         * @description One clock hour, or the part of it that was compared.
         */
        HourRow: {
            at: string;
            seconds: number;
            decisions: components["schemas"]["Counts"];
            inForce: components["schemas"]["Figures"];
            candidate: components["schemas"]["Figures"];
            /** @description The devices that could be used at its end. */
            devices: number;
            queues: components["schemas"]["QueueRow"][];
        };
        /**
         * IdleJob
         * @description One job whose devices are idle, or whose owner was warned.
         */
        IdleJob: {
            job: string;
            name: string;
            user: string;
            queue: string;
            /** @enum {string} */
            state: "busy" | "idle" | "warned" | "extended" | "acted";
            /** @description When its devices became idle. */
            since: string | null;
            /** @description Devices that are idle. */
            idle: number;
            held: number;
            wastedDeviceSeconds: number;
            warnedAt: string | null;
            actedAt: string | null;
            extendedAt: string | null;
            extendedUntil: string | null;
            /** @description Why its owner asked for more time. */
            reason: string;
            /** @description Whether nothing is done about it, and administrators alone are told. */
            dryRun: boolean;
            /**
             * @description What is done about it after the grace, or was done at `actedAt`; `warn` is nothing more, "" is not known.
             * @enum {string}
             */
            action: "warn" | "stop" | "shrink" | "suspend" | "";
            /** @description When it is done unless the devices are used; null: nothing is to come. */
            actsAt: string | null;
        };
        /**
         * IdleList
         * @description Jobs with idle devices, those first that waste the most.
         */
        IdleList: {
            items: components["schemas"]["IdleJob"][];
        };
        /**
         * ImportGroup
         * @description A group to create.
         */
        ImportGroup: {
            name: string;
            /** @default  */
            description?: string;
            /** @default  */
            externalName?: string;
            /** @default [] */
            queues?: string[];
            /** @default [] */
            storages?: string[];
            /** @default false */
            admin?: boolean;
            /** @default {} */
            extension?: Record<string, never>;
        };
        /**
         * ImportJob
         * @description A job to submit as its user.
         */
        ImportJob: {
            user: string;
            name: string;
            text: string;
        };
        /**
         * ImportToken
         * @description A token to import.
         */
        ImportToken: {
            user: string;
            token: string;
        };
        /**
         * ImportUser
         * @description An account to create.
         */
        ImportUser: {
            name: string;
            /** @default  */
            email?: string;
            /** @default false */
            admin?: boolean;
            /** @default [] */
            groups?: string[];
            /**
             * @description OpenPAI's stored password hash; it is accepted for one sign-in, then the password is hashed anew.
             * @default
             */
            passwordHash?: string;
            /** @default {} */
            extension?: Record<string, never>;
        };
        /**
         * Imported
         * @description The result for one imported object.
         */
        Imported: {
            kind: string;
            name: string;
            /** @enum {unknown} */
            result: "changed" | "created" | "kept" | "left" | "refused" | "unchanged";
            message: string;
        };
        /**
         * ImportedPage
         * @description The results of one call, in the order of its objects.
         */
        ImportedPage: {
            items: components["schemas"]["Imported"][];
        };
        /** @description Jobs that this job keeps away from, and that keep away from it. */
        JobAntiAffinity: {
            /** @description Jobs that carry one of these tags. */
            tags?: string[];
            /**
             * @description No cell of this level is shared with them.
             * @default node
             */
            level?: string;
        };
        /** @description One document run many times, each with its own index. */
        JobArray: {
            /**
             * @description How many jobs, with indexes from 0; 0 is no array.
             * @default 0
             */
            size?: number;
            /**
             * @description How many may run at once; 0 is no limit.
             * @default 0
             */
            maxParallel?: number;
        };
        /** @description Whether replicas wait at the start until all have an address. */
        JobBarrier: {
            /**
             * @description Commands start only when every replica has an address.
             * @default false
             */
            enabled?: boolean;
            /**
             * @description The longest wait; then the attempt fails as transient.
             * @default 600
             */
            timeoutSeconds?: number;
        };
        /**
         * JobCache
         * @description What the tasks of one job made of the cache, the last ones first.
         */
        JobCache: {
            /** @enum {string} */
            share: "none" | "job" | "user" | "group";
            /**
             * @description Whether `share` is the job's own word, or the default of its queue or of the server.
             * @enum {string}
             */
            source: "job" | "queue" | "server";
            /** @description The queue whose default it is: the job's own or one above it; "" with another source. */
            queue: string;
            hits: number;
            tasks: number;
            /** @description Bytes that were restored. */
            bytes: number;
            /** @description Of the tasks of which it is known; null: of none. */
            savedSeconds: number | null;
            uses: components["schemas"]["CacheUse"][];
        };
        /** @description How a replica is asked to end, and how Corral sees that it has saved its work. */
        JobCheckpoint: {
            /**
             * @description The signal that asks for a checkpoint, such as SIGUSR1; "" sends only SIGTERM.
             * @default
             */
            signal?: string;
            /**
             * @description Seconds between being asked to end and being killed; -1: as the server's setting `grace_seconds` says (30 unless it was changed).
             * @default -1
             */
            graceSeconds?: number;
            /**
             * @description A file or folder that changes with every checkpoint (within the working directory unless absolute): work saved is not lost when the job yields, and who loses least yields first. "" is none.
             * @default
             */
            path?: string;
        };
        /** @description The program's files, unpacked before the command starts. */
        JobCode: {
            /**
             * @description A folder on the submitting machine, or a blob; "" is none.
             * @default
             */
            uri?: string;
            /**
             * @description Where it is unpacked; "" is the working directory.
             * @default
             */
            target?: string;
        };
        /** @description Whether compiled code is kept for later tasks, and who shares it. */
        JobCompileCache: {
            /**
             * @description default leaves it to the queue, to the queues above it, and then to the server; none keeps nothing; job keeps it for the job's other tasks and later attempts, user for all jobs of its owner, and group for those jobs of the group's members that name the group too.
             * @default default
             * @enum {string}
             */
            share?: "default" | "none" | "job" | "user" | "group";
            /**
             * @description The group, with share: group. Each of its members runs code in the jobs that read the cache.
             * @default
             */
            group?: string;
        };
        /** @description How many ended replicas of a role end the whole job. */
        JobCompletion: {
            /**
             * @description The number of failed replicas that fails the job; below 1 none does.
             * @default 1
             */
            minFailed?: number;
            /**
             * @description The number of succeeded replicas that ends the job; below 1 all must.
             * @default -1
             */
            minSucceeded?: number;
        };
        /** @description Another job that must end first. */
        JobDependency: {
            /** @description The other job's name or id. */
            job: string;
            /**
             * @description Start when it has succeeded, or when it has ended in any way.
             * @default succeeded
             * @enum {string}
             */
            condition?: "succeeded" | "ended";
        };
        /**
         * JobDetail
         * @description All data of one job except its events and logs; `placement` has the first 2,000 tasks.
         */
        JobDetail: {
            id: string;
            name: string;
            user: string;
            queue: string;
            priority: number;
            jobType: string;
            /** @enum {string} */
            state: "waiting" | "starting" | "running" | "stopping" | "succeeded" | "failed" | "stopped";
            createdAt: string;
            startedAt: string | null;
            endedAt: string | null;
            tasks: components["schemas"]["TaskCounts"];
            /** @description Devices that the job holds when all tasks of its requested size run; fractions of devices count as fractions. */
            devices: number;
            /** @description Retries of the job and of single tasks together. */
            retries: number;
            /** @description Retries of single tasks only. */
            taskRetries: number;
            exit: components["schemas"]["ExitView"] | null;
            waiting: components["schemas"]["WaitingView"] | null;
            tags: string[];
            /** @description Devices that its tasks hold now: fewer while an elastic job is below its size, or when some tasks are over. */
            devicesHeld: number;
            /** @description Set only in a list with one entry per array. */
            array: components["schemas"]["ArrayView"] | null;
            /** @description The present document: `replicaSpec` has the requested replicas and the scheduler's `targetReplicas`. */
            document: components["schemas"]["JobDocument"];
            status: components["schemas"]["JobStatus"];
            attempt: number;
            roles: components["schemas"]["RoleView"][];
            placement: components["schemas"]["PlacementRecord"][];
            reasons: components["schemas"]["ReasonsView"] | null;
            links: {
                [key: string]: string;
            };
            /** @description None: no limit. */
            retriesLeft: number | null;
            dependsOn: string[];
            /**
             * @description Notes on its placement: unmet preferences, and whether device fractions are enforced.
             *
             *     After a submission also the documents of the file that were left out.
             */
            notes: string[];
            suspended: boolean;
            /** @description When the current attempt last reported a checkpoint. */
            checkpointedAt: string | null;
            /** @description What its program last said of its work; null: it reported nothing. */
            work: components["schemas"]["WorkView"] | null;
            /** @description Seconds of all finished waits for placement, other jobs and next attempts, without running and suspended time. */
            waitedSeconds: number;
            /** @description When the present wait began. */
            waitingSince: string | null;
            /** @description Its ten latest preemptions. */
            receipts: components["schemas"]["ReceiptView"][];
            /**
             * @description The caller's permissions on it, whatever its state.
             *
             *     Possible values are `stop`, `restart`, `suspend`, `resume`, `scale`, `delete`, `tag`, `exec`, `logs`, `environment`
             *     and, for managers of its queue, `order`.
             */
            allowed: string[];
        };
        /** @description The accelerators of one replica. */
        JobDevices: {
            /**
             * @description How many devices one replica gets; all of them or none.
             * @default 0
             */
            count?: number;
            /**
             * @description The kind of device, such as gpu or npu; "" is any.
             * @default
             */
            kind?: string;
            /**
             * @description The model, such as A100 or described-a100; "" is any.
             * @default
             */
            model?: string;
            /** @description Named devices: indexes within the node or ids; each replica gets exactly these of its node. */
            ids?: string[];
            /**
             * @description The same as bits, such as 0x33 for the devices 0, 1, 4 and 5; its bits and count agree; 0 is by count.
             * @default
             */
            bitmap?: string;
            /** @description A part of one device instead of whole ones. */
            share?: components["schemas"]["JobShare"];
        };
        /** @description A job, complete and consistent: the document that is stored, scheduled and launched. */
        JobDocument: {
            /**
             * @description The version of this language.
             * @default corral.dev/v1alpha1
             * @constant
             */
            apiVersion?: "corral.dev/v1alpha1";
            /**
             * @description Always UnifiedJob.
             * @default UnifiedJob
             * @constant
             */
            kind?: "UnifiedJob";
            /** @description What the job is called. */
            metadata: components["schemas"]["JobMetadata"];
            /** @description What it runs and how. */
            spec: components["schemas"]["JobSpec"];
        };
        /**
         * JobEdit
         * @description New values for a waiting job; a field without a value stays as it is.
         */
        JobEdit: {
            /**
             * @description A priority class (crit, prod, test, oppo) or a number.
             * @default null
             */
            priority?: string | number | null;
            /**
             * @description A duration such as 90m or 2h, or seconds; 0 is no limit.
             * @default null
             */
            maxDuration?: string | number | null;
            /** @default null */
            queue?: string | null;
        };
        /**
         * JobEfficiency
         * @description One job.
         */
        JobEfficiency: {
            job: string;
            name: string;
            user: string;
            queue: string;
            /** @enum {string} */
            state: "waiting" | "starting" | "running" | "stopping" | "succeeded" | "failed" | "stopped";
            deviceSeconds: number;
            lostDeviceSeconds: number;
            /** @description Of all its roles; null where no use of a device was measured. */
            usedDeviceSeconds: number | null;
            /** @description Device-seconds of the roles whose use was measured. */
            measuredDeviceSeconds: number;
            /** @description The time of its longest attempt of a task, which `maxDuration` bounds. */
            longestSeconds: number;
            /** @description 0 is no limit. */
            maxDurationSeconds: number;
            /** @description A shorter `maxDuration` that would have done. */
            wouldDoSeconds: number | null;
            roles: components["schemas"]["RoleEfficiency"][];
            /** @description The same in sentences, the largest waste of devices first. */
            words: string[];
        };
        /** @description A requirement on a node's label; a node must meet all of them. */
        JobExpression: {
            /** @description The label. */
            key: string;
            /**
             * @description As in Kubernetes; Gt and Lt compare whole numbers.
             * @default In
             * @enum {string}
             */
            operator?: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
            /** @description One of them (In), none of them (NotIn), or the one bound. */
            values?: string[];
        };
        /**
         * JobFairness
         * @description One job that succeeded in the week.
         */
        JobFairness: {
            job: string;
            name: string;
            user: string;
            queue: string;
            devices: number;
            /** @description From submission to end. */
            seconds: number;
            /** @description For which it needed its devices. */
            neededSeconds: number;
            /**
             * @description Its finish-time fairness: `seconds` by those that it would have taken on an equal share of the devices that was its
             *     alone. 1 is as on such a share, above it is worse.
             */
            rho: number;
        };
        /**
         * JobFile
         * @description The file that a job was submitted with; secrets are replaced by `******`.
         */
        JobFile: {
            job: string;
            text: string;
            /** @description The parameters given beside the file. */
            parameters: {
                [key: string]: string;
            };
            /** @description The digest of the code that was uploaded with it. */
            code: string;
            /** @description The number of placeholders with a stored secret; the owner can submit the file again with `from`. */
            secrets: number;
            /** @description What was changed of the job since, in sentences, the earliest first; the file has none of it. The last 20. */
            edits: string[];
        };
        /** @description Data fetched before the command starts. */
        JobInput: {
            /** @description Where the data is, such as file:///data/digits. */
            uri: string;
            /** @description Where the replica finds it. */
            path: string;
        };
        /** @description Options that only the Kubernetes engine reads. */
        JobKubernetes: {
            /** @description A pod template the role's pods are made from; Corral's own fields win. */
            podTemplate?: {
                [key: string]: unknown;
            };
            /**
             * @description Seconds after which a pod that was told to end counts as ended, though it may still run; -1: never.
             * @default -1
             */
            forceAfterSeconds?: number;
        };
        /** @description The speed of a job at one size. */
        JobMeasuredSize: {
            /** @description The devices of all its tasks together. */
            devices: number;
            /**
             * @description The nodes that they are on.
             * @default 1
             */
            nodes?: number;
            /** @description Its work per second at that size, in any unit. */
            throughput: number;
        };
        /** @description Name, labels and annotations of a job. */
        JobMetadata: {
            /** @description The job's name: a DNS label of at most 63 characters. */
            name: string;
            /** @description Short labels that lists can be filtered by. */
            labels?: {
                [key: string]: string;
            };
            /** @description Free text that tools keep with the job. */
            annotations?: {
                [key: string]: string;
            };
        };
        /** @description Requirements on the network between the replicas. */
        JobNetwork: {
            /**
             * @description Remote direct memory access.
             * @default none
             * @enum {string}
             */
            rdma?: "none" | "preferred" | "required";
        };
        /** @description Which nodes the tasks may be on. */
        JobNodeRules: {
            /** @description Only these nodes, with or without the engine's name. */
            include?: string[];
            /** @description None of these nodes. */
            exclude?: string[];
            /** @description What their labels have to be, besides nodeSelector. */
            expressions?: components["schemas"]["JobExpression"][];
            /** @description The taints that the tasks do not mind. */
            tolerations?: components["schemas"]["JobToleration"][];
        };
        /** @description What the job's owner is told of it; without any of it the preferences of the owner's channels apply. */
        JobNotifications: {
            /** @description What is told; `ended` is succeeded, failed or stopped. */
            events?: ("started" | "succeeded" | "failed" | "stopped" | "retried" | "preempted" | "idle" | "hung" | "ended")[];
            /**
             * @description Tell it when the job has waited this long; 0 is never.
             * @default 0
             */
            waitingSeconds?: number;
            /** @description The owner's channels that are told; none: all of them. */
            channels?: string[];
            /**
             * @description Tell nothing at all of this job.
             * @default false
             */
            quiet?: boolean;
        };
        /**
         * JobOutcome
         * @description When one job starts, in seconds from now. Of other people's jobs ordinary users see no name and no user.
         */
        JobOutcome: {
            id: string;
            name: string;
            user: string;
            queue: string;
            devices: number;
            waitedSeconds: number;
            /** @description Whether the question submits it; then it has no time before. */
            added: boolean;
            before: components["schemas"]["Spread"];
            after: components["schemas"]["Spread"];
            /** @description Whether it never starts as things are, since no nodes could hold it even if nothing ran. */
            neverBefore: boolean;
            /** @description The same with the changes. */
            neverAfter: boolean;
        };
        /** @description Data kept after the command has ended. */
        JobOutput: {
            /** @description Where the replica leaves it. */
            path: string;
            /** @description Where it is kept, such as file:///data/models. */
            uri: string;
        };
        /** @description Free ports of the node that Corral picks and tells to the replica and its peers. */
        JobPort: {
            /** @description What the ports are called. */
            name: string;
            /**
             * @description How many.
             * @default 1
             */
            count?: number;
            /**
             * @description The number that they begin at; 0: whichever are free. A taken one is waited for.
             * @default 0
             */
            start?: number;
        };
        /** @description What each task checks before its command begins. */
        JobPreflight: {
            /** @description network measures latency and bandwidth between all tasks; platform reads what each machine is like. */
            checks?: ("network" | "platform")[];
            /**
             * @description How long the checks may delay the command, with the wait for the other tasks.
             * @default 30
             */
            timeoutSeconds?: number;
            /**
             * @description Whether a task fails when a check cannot be completed; otherwise its command starts.
             * @default false
             */
            required?: boolean;
        };
        /** @description The number of tasks of the counted role, and the bounds within which the scheduler may choose it. */
        JobReplicaSpec: {
            /**
             * @description The role that is counted; the first one if unsaid.
             * @default
             */
            role?: string;
            /**
             * @description The number asked for; `corral scale` sets it.
             * @default 1
             */
            replicas?: number;
            /**
             * @description The fewest it can run with; replicas if unsaid.
             * @default 1
             */
            minReplicas?: number;
            /**
             * @description The most it can use; replicas if unsaid.
             * @default 1
             */
            maxReplicas?: number;
            /** @description Replicas by node id; only the scheduler writes it. */
            targetReplicas?: {
                [key: string]: number;
            };
        };
        /** @description How the program tells how far it is: by `corral.report`, by a file, or by lines of its log. */
        JobReport: {
            /**
             * @description Whether tasks can `import corral` and call `corral.report(step=…, throughput=…, loss=…)`.
             * @default false
             */
            enabled?: boolean;
            /**
             * @description A JSON file that the program writes instead, with the values by their names, within the working directory unless absolute. "" is none.
             * @default
             */
            file?: string;
            /**
             * @description A regular expression that finds the values in a line of the log of the first task of each role; its groups bear their names, such as `step (?P<step>[0-9]+)`. "" is none.
             * @default
             */
            pattern?: string;
            /**
             * @description How many steps the work has, unless the program says so; 0: not known.
             * @default 0
             */
            steps?: number;
            /**
             * @description Folders whose event files of TensorBoard become curves of the job, beside the working folder: absolute, such as one in a mounted storage, within the working directory, or a URI of S3 or HDFS.
             * @default []
             */
            tensorboard?: string[];
        };
        /** @description The resources of one replica. */
        JobResources: {
            /**
             * @description Processors: "2", "0.5" or "500m"; "0" reserves and limits nothing.
             * @default 1
             */
            cpu?: string;
            /**
             * @description Memory: "512Mi" or "2Gi"; "0" reserves and limits nothing.
             * @default 0
             */
            memory?: string;
            /**
             * @description Disk space: "20Gi"; "0" reserves nothing.
             * @default 0
             */
            disk?: string;
            /** @description Any other resource that nodes count, by its name, such as {licences: 2}. */
            other?: {
                [key: string]: number;
            };
            devices?: components["schemas"]["JobDevices"];
        };
        /** @description When a failed or ended attempt is retried (FrameworkController's rules). */
        JobRetryPolicy: {
            /**
             * @description Transient failures are retried without being counted, permanent ones never.
             * @default true
             */
            fancy?: boolean;
            /**
             * @description Counted retries after failures; -1 without end, -2 even after success.
             * @default 0
             */
            maxRetries?: number;
        };
        /** @description A role in the canonical form: equal tasks, numbered from 0. */
        JobRole: {
            /** @description The role's name, unique in the job. */
            name: string;
            /**
             * @description How many tasks; left out for the one role that replicaSpec counts.
             * @default 0
             */
            replicas?: number;
            /**
             * @description The container image; "" is the engine's default or none.
             * @default
             */
            image?: string;
            /** @description Names of the secrets that open the image's registry. */
            imagePullSecrets?: string[];
            /** @description What each task gets of its node. */
            resources?: components["schemas"]["JobResources"];
            /**
             * @description Processes the launcher starts per task; 0 is one per device, at least one.
             * @default 0
             */
            processesPerReplica?: number;
            /** @description What one process runs: the program and its arguments. */
            command?: string[];
            /**
             * @description The folder the command starts in; "" is where the code was unpacked.
             * @default
             */
            workingDir?: string;
            /** @description Environment variables. */
            env?: {
                [key: string]: string;
            };
            /** @description Stored secrets given to each task. */
            secrets?: components["schemas"]["JobSecret"][];
            /** @description Free ports each task is given. */
            ports?: components["schemas"]["JobPort"][];
            /**
             * @description Shared memory, such as "1Gi"; "" is the engine's default.
             * @default
             */
            shm?: string;
            /** @description Narrower closeness for this role alone, besides the job's. */
            topology?: components["schemas"]["JobTopology"];
            /** @description How many ended tasks of this role end the job. */
            completion?: components["schemas"]["JobCompletion"];
            /** @description When one ended task is tried again. */
            retryPolicy?: components["schemas"]["JobRetryPolicy"];
            /**
             * @description The longest run of one attempt of a task: then it is ended as failed (-1004), and retryPolicy decides. 0 is no limit.
             * @default 0
             */
            maxTaskSeconds?: number;
            /** @description Labels that each task's node must have. */
            nodeSelector?: {
                [key: string]: string;
            };
            /** @description Which nodes its tasks may be on, besides the job's own rules. */
            nodes?: components["schemas"]["JobNodeRules"];
            /**
             * @description The pinned cell that its tasks have to be in; "" is the job's.
             * @default
             */
            pinnedCell?: string;
            /**
             * @description Under the preset hived: roles of one name are one affinity group, placed together apart from the others.
             * @default
             */
            affinityGroup?: string;
            /** @description What only the Kubernetes engine reads. */
            kubernetes?: components["schemas"]["JobKubernetes"];
        };
        /** @description A stored secret given to each replica as a variable or a file, never in arguments. */
        JobSecret: {
            /** @description The secret's name in Corral's store. */
            name: string;
            /**
             * @description The variable that holds it.
             * @default
             */
            env?: string;
            /**
             * @description The file that holds it, below the secrets folder.
             * @default
             */
            file?: string;
        };
        /** @description A share of one device; an unset share of computing power or memory equals the other one. */
        JobShare: {
            /**
             * @description Of its computing power; 0 is unsaid.
             * @default 0
             */
            computePercent?: number;
            /**
             * @description Of its memory; 0 is unsaid.
             * @default 0
             */
            memoryPercent?: number;
            /**
             * @description Its memory as an amount instead, such as 10Gi; "" is unsaid.
             * @default
             */
            memory?: string;
            /**
             * @description pack: on devices that others have parts of already, so that the rest stay whole; spread: on the emptiest.
             * @default pack
             * @enum {string}
             */
            policy?: "pack" | "spread";
        };
        /** @description With whom the job shares its nodes. */
        JobSharing: {
            /**
             * @description Its nodes are shared with no other job.
             * @default false
             */
            exclusive?: boolean;
            /**
             * @description No two of its tasks are on one node (FrameworkLauncher's antiaffinityAllocation).
             * @default false
             */
            oneTaskPerNode?: boolean;
            /** @description Jobs to keep away from. */
            antiAffinity?: components["schemas"]["JobAntiAffinity"];
        };
        /** @description The spec of a job: its roles, framework, scheduling and options. */
        JobSpec: {
            /**
             * @description The framework that starts it: pytorch, tensorflow, jax, mpi, horovod, cntk, shell, notebook, external, or a plug-in's.
             * @default shell
             */
            jobType?: string;
            /**
             * @description The queue (virtual cluster) whose share it uses.
             * @default default
             */
            queue?: string;
            /**
             * @description crit (120), prod (100), test (10), oppo (-1), or any integer; "" is test.
             * @default
             */
            priority?: string;
            /**
             * @description Whether others may have it yield under their queues' rules; in cells that others own it always may.
             * @default true
             */
            preemptible?: boolean;
            /**
             * @description The pinned cell that all of it has to be in, one of its virtual cluster's; "" is any place.
             * @default
             */
            pinnedCell?: string;
            /**
             * @description Under the preset hived: whether it runs on as a guest, instead of being ended, when a job of higher priority of the same virtual cluster takes its cells.
             * @default false
             */
            lazyPreemption?: boolean;
            /** @description How close together the whole job is, all roles counted together. */
            topology?: components["schemas"]["JobTopology"];
            /** @description How fast it works on each model of device, in work per second of any unit; 0: it cannot run on that model. Policies for several models read it. */
            speeds?: {
                [key: string]: number;
            };
            /** @description How fast it works at several sizes, as measured before. A policy that sizes elastic jobs by their goodput or as Themis does reads it until the job reports its own throughput there. */
            scaling?: components["schemas"]["JobMeasuredSize"][];
            /**
             * @description Whether its tasks get their places all at once; without, each starts as soon as there is one for it.
             * @default true
             */
            gang?: boolean;
            /** @description The roles, in order. */
            roles: components["schemas"]["JobRole"][];
            /** @description How many tasks the counted role has. */
            replicaSpec?: components["schemas"]["JobReplicaSpec"];
            /**
             * @description The longest run of the job; then it is ended as failed. 0 is no limit.
             * @default 0
             */
            maxDurationSeconds?: number;
            /**
             * @description The job is suspended when its tasks report for this long that nobody works in them, as notebooks do by themselves; at least 1m. 0 is never.
             * @default 0
             */
            idleSeconds?: number;
            /**
             * @description How long its tasks may show no progress, by a reported step, their logs or their devices, before the job hangs, at most; 0 leaves it to the queue.
             * @default 0
             */
            hangAfterSeconds?: number;
            /**
             * @description The job should end within this time of its submission. The order deadline starts the most urgent job first. 0 is no deadline.
             * @default 0
             */
            deadlineSeconds?: number;
            /** @description The program's files. */
            code?: components["schemas"]["JobCode"];
            /** @description Data fetched before the start. */
            inputs?: components["schemas"]["JobInput"][];
            /** @description Data kept after the end. */
            outputs?: components["schemas"]["JobOutput"][];
            /** @description Storages that the tasks have, each at a path of its own. */
            storages?: components["schemas"]["JobStorageUse"][];
            /** @description Which nodes the job may be on. */
            nodes?: components["schemas"]["JobNodeRules"];
            /** @description With which jobs the job shares its nodes. */
            sharing?: components["schemas"]["JobSharing"];
            /** @description What is needed of the network. */
            network?: components["schemas"]["JobNetwork"];
            /** @description When the whole job is tried again. */
            retryPolicy?: components["schemas"]["JobRetryPolicy"];
            /** @description How tasks are asked to end. */
            checkpoint?: components["schemas"]["JobCheckpoint"];
            /** @description How the program tells how far it is. */
            report?: components["schemas"]["JobReport"];
            /**
             * @description Whether `corral profile --what torch` can have traces of the tasks' PyTorch.
             * @default false
             */
            profile?: boolean;
            /** @description Whether what its tasks compile is kept for later tasks. */
            compileCache?: components["schemas"]["JobCompileCache"];
            preflight?: components["schemas"]["JobPreflight"];
            /** @description What the owner is told of it, on the owner's channels. */
            notifications?: components["schemas"]["JobNotifications"];
            /**
             * @description When a node is lost or a device turns unhealthy under the job: replace moves it elsewhere, keep lets it run on; auto moves it off a lost node and keeps it on an unhealthy device.
             * @default auto
             * @enum {string}
             */
            badHardware?: "auto" | "replace" | "keep";
            /**
             * @description The table of exit codes: which failures are transient, and which are permanent. `openpai` is the former name of `standard`, and deprecated.
             * @default standard
             * @enum {string}
             */
            exitTable?: "standard" | "openpai" | "frameworkcontroller" | "frameworklauncher";
            /** @description Whether tasks wait for each other at the start. */
            barrier?: components["schemas"]["JobBarrier"];
            /** @description Words to find the job by. */
            tags?: string[];
            /** @description Values that `<% $parameters.NAME %>` stands for anywhere in the document. */
            parameters?: {
                [key: string]: string;
            };
            /** @description Jobs that must have ended before this one starts. */
            dependsOn?: components["schemas"]["JobDependency"][];
            /** @description Run this document many times. */
            array?: components["schemas"]["JobArray"];
        };
        /**
         * JobStatus
         * @description The scheduler's result for a job: `placements` has task counts by role and node id, including ending tasks.
         */
        JobStatus: {
            placements: {
                [key: string]: {
                    [key: string]: number;
                };
            };
        };
        /** @description A storage of a job, and the path at which its tasks find it. */
        JobStorageUse: {
            /** @description The Storage document; "" stands for every storage that is one of the user's defaults. */
            name: string;
            /**
             * @description Where the tasks find it; "" is /mnt/NAME.
             * @default
             */
            mountPath?: string;
        };
        /**
         * JobSummary
         * @description One entry of the job list.
         */
        JobSummary: {
            id: string;
            name: string;
            user: string;
            queue: string;
            priority: number;
            jobType: string;
            /** @enum {string} */
            state: "waiting" | "starting" | "running" | "stopping" | "succeeded" | "failed" | "stopped";
            createdAt: string;
            startedAt: string | null;
            endedAt: string | null;
            tasks: components["schemas"]["TaskCounts"];
            /** @description Devices that the job holds when all tasks of its requested size run; fractions of devices count as fractions. */
            devices: number;
            /** @description Retries of the job and of single tasks together. */
            retries: number;
            /** @description Retries of single tasks only. */
            taskRetries: number;
            exit: components["schemas"]["ExitView"] | null;
            waiting: components["schemas"]["WaitingView"] | null;
            tags: string[];
            /** @description Devices that its tasks hold now: fewer while an elastic job is below its size, or when some tasks are over. */
            devicesHeld: number;
            /** @description Set only in a list with one entry per array. */
            array: components["schemas"]["ArrayView"] | null;
        };
        /** @description A taint of nodes that the tasks tolerate, as in Kubernetes. */
        JobToleration: {
            /**
             * @description The taint's key; "" with Exists is any.
             * @default
             */
            key?: string;
            /**
             * @description Whether the value matters.
             * @default Equal
             * @enum {string}
             */
            operator?: "Equal" | "Exists";
            /**
             * @description The taint's value.
             * @default
             */
            value?: string;
            /**
             * @description The taint's effect; "" is any.
             * @default
             * @enum {string}
             */
            effect?: "" | "NoSchedule" | "NoExecute" | "PreferNoSchedule";
            /**
             * @description How long the tasks stay on a node with a NoExecute taint before they yield; -1: forever.
             * @default -1
             */
            tolerationSeconds?: number;
        };
        /** @description How close together, or how far apart, the replicas are placed. */
        JobTopology: {
            /**
             * @description The level all must be inside, such as node or rack; "" is anywhere.
             * @default
             */
            required?: string;
            /**
             * @description The level tried first; not being inside it is noted, not an error.
             * @default
             */
            preferred?: string;
            /** @description Groups of consecutive replicas. */
            group?: components["schemas"]["JobTopologyGroup"];
            /** @description Replicas of a role that are apart; a job's holds for each role. */
            spread?: components["schemas"]["JobTopologySpread"];
            /**
             * @description All devices are of one model, whichever.
             * @default false
             */
            sameModel?: boolean;
        };
        /** @description Groups of consecutive replicas that are placed closer together than the rest. */
        JobTopologyGroup: {
            /**
             * @description Replicas in one group; 0 is no grouping.
             * @default 0
             */
            size?: number;
            /**
             * @description The level that each group must be inside.
             * @default
             */
            required?: string;
        };
        /** @description Replicas in different cells, so that the failure of one cell does not hit all. */
        JobTopologySpread: {
            /**
             * @description The replicas go to different cells of this level; "" is anywhere.
             * @default
             */
            level?: string;
            /**
             * @description The largest difference in replicas between two cells that take them; 0: as even as possible.
             * @default 0
             */
            maxSkew?: number;
        };
        /**
         * LedgerLine
         * @description Device-seconds lent to, or borrowed from, one other queue, and the devices lent or borrowed now.
         */
        LedgerLine: {
            queue: string;
            deviceSeconds: number;
            devices: number;
            since: string;
        };
        /**
         * LedgerView
         * @description Lending and borrowing of one queue, by the other queue.
         */
        LedgerView: {
            queue: string;
            at: string;
            lentDeviceSeconds: number;
            borrowedDeviceSeconds: number;
            lent: components["schemas"]["LedgerLine"][];
            borrowed: components["schemas"]["LedgerLine"][];
        };
        /**
         * LineEntry
         * @description One job of the waiting list. Its amounts are those it needs to begin, or all that it could still get.
         */
        LineEntry: {
            /** @description Its position in the waiting list of all queues, from 1: the order in which the next cycle visits jobs. */
            position: number;
            job: string;
            name: string;
            user: string;
            queue: string;
            priority: number;
            submittedAt: string;
            tasks: number;
            /** @description Fractions of devices count as fractions: 2.5. */
            devices: number;
            cpuMillis: number;
            memoryBytes: number;
            /** @description The requested device model; "" is any. */
            model: string;
            /** @description The level whose one cell must hold the whole gang; "" is none. */
            level: string;
            /** @description Whether it runs already and waits for more tasks. */
            grows: boolean;
            /** @description Whether other jobs were told to end for it; its place is reserved. */
            yielding: boolean;
            /** @description The binding constraint; None before the first cycle that looks at it. */
            reason: components["schemas"]["ReasonView"] | null;
            /** @description Whether it could run on the machines known now if they were empty. */
            possible: boolean;
            /** @description When it is likely to start; its `after` is empty. */
            estimate: components["schemas"]["EstimateView"] | null;
        };
        /**
         * Login
         * @description Credentials: either the TOKEN of a one-time link, or `user` and `password`.
         */
        Login: {
            /** @default  */
            link?: string;
            /** @default  */
            user?: string;
            /** @default  */
            password?: string;
        };
        /**
         * LoginLink
         * @description A one-time sign-in link; shown only once.
         */
        LoginLink: {
            link: string;
            expiresAt: string;
        };
        /**
         * MachineDisk
         * @description A disk of the machine.
         */
        MachineDisk: {
            name: string;
            bytes: number;
            rotational: boolean;
            scheduler: string;
        };
        /**
         * MachineFacts
         * @description What a task read of its machine; what it could not read is empty.
         */
        MachineFacts: {
            host: string;
            kernel: string;
            os: string;
            processor: string;
            processors: number;
            sockets: number | null;
            clock: string;
            /** @description How many processors have which governor of their frequency. */
            governors: {
                [key: string]: number;
            };
            /** @description How often processors were throttled since the machine started. */
            throttled: number | null;
            /** @description Of transparent huge pages: always, madvise or never. */
            hugePages: string;
            swappiness: number | null;
            numaBalancing: number | null;
            memory: components["schemas"]["MachineMemory"];
            numa: components["schemas"]["NumaNode"][];
            pci: components["schemas"]["PciLink"][];
            disks: components["schemas"]["MachineDisk"][];
            /** @description Versions of the drivers of devices and networks. */
            drivers: {
                [key: string]: string;
            };
            /** @description The part of the last minute in which some task waited for cpu, memory or io. */
            pressure: {
                [key: string]: number;
            };
            workFolder: components["schemas"]["FolderDisk"];
        };
        /**
         * MachineMemory
         * @description Memory in bytes.
         */
        MachineMemory: {
            total: number;
            available: number;
            pageCache: number;
            /** @description Changed pages of files that wait to be written. */
            dirty: number;
            swapTotal: number;
            swapFree: number;
            hugePagesReserved: number;
        };
        /**
         * MachineReport
         * @description A machine of the job.
         */
        MachineReport: {
            task: string;
            node: string;
            facts: components["schemas"]["MachineFacts"];
            findings: string[];
        };
        /**
         * Me
         * @description The caller.
         */
        Me: {
            user: string;
            role: string;
            groups: string[];
            /** @description The queues that the caller manages; `*` is all. */
            manages: string[];
        };
        /**
         * MemoryHolder
         * @description What holds memory, in bytes before and after the profile.
         */
        MemoryHolder: {
            kind: string;
            name: string;
            before: number;
            after: number;
        };
        /**
         * MismatchView
         * @description One difference (`what`) between a machine's report and its configuration.
         */
        MismatchView: {
            what: string;
            configured: string;
            reported: string;
        };
        /**
         * Moved
         * @description A job that starts at another time.
         */
        Moved: {
            job: string;
            name: string;
            user: string;
            queue: string;
            /** @description Earlier under the candidate if above 0. */
            seconds: number;
            /** @description False: it started under one of both only, so the difference is at least so large. */
            complete: boolean;
        };
        /**
         * NetworkLevel
         * @description The usual figures of the ways of one level: medians.
         */
        NetworkLevel: {
            level: string;
            ways: number;
            bytesPerSecond: number;
            latencySeconds: number | null;
        };
        /**
         * NetworkReport
         * @description The network between the tasks of a job, as they measured it before their commands began.
         */
        NetworkReport: {
            at: string;
            tasks: number;
            /** @description How long the slowest task took for it. */
            seconds: number;
            /** @description From the narrowest to the widest. */
            levels: components["schemas"]["NetworkLevel"][];
            ways: components["schemas"]["NetworkWay"][];
            /** @description The ways of the ring while all tasks send at once. */
            ring: components["schemas"]["NetworkWay"][];
            /** @description What is slower than the topology lets expect, or could not be measured, in sentences. */
            findings: string[];
        };
        /**
         * NetworkWay
         * @description The network from one task to another.
         */
        NetworkWay: {
            source: string;
            target: string;
            /** @description The narrowest level that both are in: node, rack and so on; "cluster" when they share none. */
            level: string;
            bytesPerSecond: number;
            /** @description Half of a round trip. */
            latencySeconds: number | null;
            /** @description Why it is slower than the topology lets expect; "" where it is not. */
            slow: string;
        };
        /**
         * NewChannel
         * @description A channel to add.
         */
        NewChannel: {
            name: string;
            /** @enum {string} */
            kind: "mail" | "webhook" | "slack" | "teams" | "apprise";
            /** @description A mail address, or the URL of a webhook, which is stored sealed. */
            address: string;
            /**
             * @default [
             *       "preempted",
             *       "ended",
             *       "idle",
             *       "hung"
             *     ]
             */
            events?: ("started" | "succeeded" | "failed" | "stopped" | "retried" | "preempted" | "idle" | "hung" | "ended")[];
            /**
             * @description Seconds of waiting after which it is told; 0 is never.
             * @default 0
             */
            waitingSeconds?: number;
            /**
             * @description A pattern of the names of the jobs that are told, such as `train-*`.
             * @default *
             */
            jobs?: string;
        };
        /**
         * NewChannelView
         * @description A channel that was just made.
         */
        NewChannelView: {
            name: string;
            /** @enum {string} */
            kind: "mail" | "webhook" | "slack" | "teams" | "apprise";
            /** @description Without its secret parts. */
            address: string;
            verified: boolean;
            events: ("started" | "succeeded" | "failed" | "stopped" | "retried" | "preempted" | "idle" | "hung" | "ended")[];
            waitingSeconds: number;
            jobs: string;
            createdAt: string;
            /** @description The key of a webhook's signatures; it is told only here. */
            signingKey: string;
        };
        /**
         * NewGroup
         * @description A group to create.
         */
        NewGroup: {
            name: string;
            /** @default  */
            description?: string;
            /**
             * @default {
             *       "queues": [],
             *       "manages": [],
             *       "storages": []
             *     }
             */
            grant?: components["schemas"]["GrantWords"];
            /**
             * @description The highest priority of its members' jobs.
             * @default null
             */
            maxPriority?: number | null;
        };
        /**
         * NewToken
         * @description A new token; `token` is shown only once.
         */
        NewToken: {
            id: string;
            name: string;
            kind: string;
            user: string;
            createdAt: string;
            expiresAt: string | null;
            lastUsedAt: string | null;
            token: string;
        };
        /**
         * NewUser
         * @description An account to create; without a password, its user first signs in with a one-time link.
         */
        NewUser: {
            name: string;
            /** @default user */
            role?: string;
            /** @default [] */
            groups?: string[];
            /** @default null */
            password?: string | null;
            /** @default  */
            email?: string;
            /**
             * @description The highest priority of the account's jobs; None leaves it to the account's groups.
             * @default null
             */
            maxPriority?: number | null;
        };
        /**
         * NodeJob
         * @description A job with tasks on a node: the number of these tasks, and of the node's devices they hold.
         */
        NodeJob: {
            id: string;
            name: string;
            user: string;
            tasks: number;
            /** @description Fractions of devices count as fractions: 2.5. */
            devices: number;
        };
        /**
         * NodeView
         * @description One machine; `name` is ENGINE/NODE, `levels` the cells above it (rack and so on).
         */
        NodeView: {
            name: string;
            engine: string;
            /** @description As reported by its engine; a cordoned node may be ready, yet takes no new tasks. */
            ready: boolean;
            reason: string;
            cordon: components["schemas"]["CordonView"] | null;
            levels: {
                [key: string]: string;
            };
            labels: {
                [key: string]: string;
            };
            total: components["schemas"]["Amounts"];
            free: components["schemas"]["Amounts"];
            devices: components["schemas"]["DeviceView"][];
            links: number[][];
            /** @description Differences between report and configuration; a node with any is not ready. */
            mismatches: components["schemas"]["MismatchView"][];
            tasks: number;
            /** @description The jobs with tasks on it, by name; draining the node would move these. */
            jobs: components["schemas"]["NodeJob"][];
            seenAt: string;
        };
        /**
         * NotificationView
         * @description One message in the history of a person's notifications.
         */
        NotificationView: {
            id: number;
            at: string;
            channel: string;
            /** @description What happened: one of the events, `code` for a verification, or `test`. */
            event: string;
            job: string;
            subject: string;
            /**
             * @description `failed` was tried in vain, `dropped` was never tried.
             * @enum {string}
             */
            state: "queued" | "sent" | "failed" | "dropped";
            tries: number;
            nextTry: string | null;
            /** @description Why the last try failed. */
            error: string;
        };
        /**
         * NumaNode
         * @description One NUMA node.
         */
        NumaNode: {
            node: number;
            /** @description Such as 0-15,32-47. */
            processors: string;
            memory: number;
        };
        /**
         * OfferBody
         * @description Which task asks for a bundle, and what its compiled code depends on.
         */
        OfferBody: {
            attempt: string;
            facts: {
                [key: string]: string;
            };
        };
        /**
         * OidcView
         * @description Whether sign-in with OpenID Connect is enabled, and the label of its button.
         */
        OidcView: {
            enabled: boolean;
            label: string;
        };
        /**
         * OpenPaiImport
         * @description One part of an import, which may be spread over several calls.
         */
        OpenPaiImport: {
            /** @default [] */
            groups?: components["schemas"]["ImportGroup"][];
            /** @default [] */
            users?: components["schemas"]["ImportUser"][];
            /** @default [] */
            tokens?: components["schemas"]["ImportToken"][];
            /** @default [] */
            jobs?: components["schemas"]["ImportJob"][];
            /**
             * @description The secret with which the cluster signed its tokens.
             * @default
             */
            jwtSecret?: string;
            /**
             * @description Whether the cluster's valid tokens were exported; then no other token is accepted.
             * @default false
             */
            tokensListed?: boolean;
            /**
             * @description The OpenID provider where these users sign in.
             * @default
             */
            issuer?: string;
            /**
             * @description In a dry run: users that do not exist yet but will when the import runs.
             * @default []
             */
            comingUsers?: string[];
        };
        /**
         * OpenedService
         * @description An address that opens a service in one browser, once.
         */
        OpenedService: {
            url: string;
            expiresAt: string;
        };
        /**
         * OtherApplication
         * @description A running or waiting application of the cluster that is not Corral's.
         */
        OtherApplication: {
            id: string;
            name: string;
            user: string;
            queue: string;
            /** @description What the cluster calls it: MAPREDUCE, SPARK, … */
            kind: string;
            state: string;
            startedAt: string;
            containers: number;
            used: components["schemas"]["Amounts"];
        };
        /**
         * OutputView
         * @description A place where a job keeps results: an output of its document, or a storage that its tasks may write.
         */
        OutputView: {
            index: number;
            /** @description Empty for a storage. */
            uri: string;
            /** @description Where the tasks have it. */
            path: string;
            /** @description The storage that it is, or is in; empty: none that the caller may use. */
            storage: string;
            browsable: boolean;
            /** @description Why it is not shown. */
            message: string;
        };
        /**
         * Overrides
         * @description What should not be done about an event.
         */
        Overrides: {
            /** @default false */
            skip?: boolean;
        };
        /**
         * Page[AttemptRecord]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_AttemptRecord_: {
            items: components["schemas"]["AttemptRecord"][];
            next: string | null;
        };
        /**
         * Page[AuditRecord]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_AuditRecord_: {
            items: components["schemas"]["AuditRecord"][];
            next: string | null;
        };
        /**
         * Page[ChannelView]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_ChannelView_: {
            items: components["schemas"]["ChannelView"][];
            next: string | null;
        };
        /**
         * Page[ClusterUse]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_ClusterUse_: {
            items: components["schemas"]["ClusterUse"][];
            next: string | null;
        };
        /**
         * Page[DeviceView]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_DeviceView_: {
            items: components["schemas"]["DeviceView"][];
            next: string | null;
        };
        /**
         * Page[DocumentSummary]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_DocumentSummary_: {
            items: components["schemas"]["DocumentSummary"][];
            next: string | null;
        };
        /**
         * Page[EventRecord]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_EventRecord_: {
            items: components["schemas"]["EventRecord"][];
            next: string | null;
        };
        /**
         * Page[FileView]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_FileView_: {
            items: components["schemas"]["FileView"][];
            next: string | null;
        };
        /**
         * Page[GroupView]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_GroupView_: {
            items: components["schemas"]["GroupView"][];
            next: string | null;
        };
        /**
         * Page[HealthEntryView]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_HealthEntryView_: {
            items: components["schemas"]["HealthEntryView"][];
            next: string | null;
        };
        /**
         * Page[HealthView]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_HealthView_: {
            items: components["schemas"]["HealthView"][];
            next: string | null;
        };
        /**
         * Page[JobSummary]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_JobSummary_: {
            items: components["schemas"]["JobSummary"][];
            next: string | null;
        };
        /**
         * Page[NodeView]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_NodeView_: {
            items: components["schemas"]["NodeView"][];
            next: string | null;
        };
        /**
         * Page[NotificationView]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_NotificationView_: {
            items: components["schemas"]["NotificationView"][];
            next: string | null;
        };
        /**
         * Page[OutputView]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_OutputView_: {
            items: components["schemas"]["OutputView"][];
            next: string | null;
        };
        /**
         * Page[PastAlertView]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_PastAlertView_: {
            items: components["schemas"]["PastAlertView"][];
            next: string | null;
        };
        /**
         * Page[PlacementRecord]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_PlacementRecord_: {
            items: components["schemas"]["PlacementRecord"][];
            next: string | null;
        };
        /**
         * Page[QueueView]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_QueueView_: {
            items: components["schemas"]["QueueView"][];
            next: string | null;
        };
        /**
         * Page[ReceiptView]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_ReceiptView_: {
            items: components["schemas"]["ReceiptView"][];
            next: string | null;
        };
        /**
         * Page[SavedFilter]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_SavedFilter_: {
            items: components["schemas"]["SavedFilter"][];
            next: string | null;
        };
        /**
         * Page[SecretView]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_SecretView_: {
            items: components["schemas"]["SecretView"][];
            next: string | null;
        };
        /**
         * Page[ServerPart]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_ServerPart_: {
            items: components["schemas"]["ServerPart"][];
            next: string | null;
        };
        /**
         * Page[StorageView]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_StorageView_: {
            items: components["schemas"]["StorageView"][];
            next: string | null;
        };
        /**
         * Page[TaskRecord]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_TaskRecord_: {
            items: components["schemas"]["TaskRecord"][];
            next: string | null;
        };
        /**
         * Page[TokenView]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_TokenView_: {
            items: components["schemas"]["TokenView"][];
            next: string | null;
        };
        /**
         * Page[UserView]
         * @description One page of a longer list; pass `next` as `after` to read the next page, None is the end.
         */
        Page_UserView_: {
            items: components["schemas"]["UserView"][];
            next: string | null;
        };
        /**
         * PastAlertView
         * @description An alert that fired.
         */
        PastAlertView: {
            /** @description A short name of the alert, the same for the same labels. */
            fingerprint: string;
            /** @description The name of its rule. */
            name: string;
            severity: string;
            labels: {
                [key: string]: string;
            };
            annotations: {
                [key: string]: string;
            };
            /** @description The value of the rule's expression; null where the source tells none. */
            value: number | null;
            firedAt: string;
            /** @description null while it fires. */
            endedAt: string | null;
            /** @enum {string} */
            source: "rules" | "alertmanager";
        };
        /**
         * PciLink
         * @description The link of a PCI device: what it runs at, and what it could.
         */
        PciLink: {
            address: string;
            kind: string;
            driver: string;
            speed: string;
            mostSpeed: string;
            width: number;
            mostWidth: number;
            numaNode: number | null;
        };
        /**
         * PeersView
         * @description The started tasks of a job attempt, for the tasks themselves.
         */
        PeersView: {
            attempt: number;
            /** @description Whether every task of the gang has started. */
            complete: boolean;
            peers: components["schemas"]["PlacementRecord"][];
        };
        /**
         * Place
         * @description The new position of a waiting job in its queue.
         */
        Place: {
            /** @enum {unknown} */
            place: "before" | "first" | "last" | "own";
            /**
             * @description The other job, for the place `before`.
             * @default
             */
            before?: string;
        };
        /**
         * PlacementRecord
         * @description The node and devices of one task; `rank` is its number in topology order, None if the framework has no ranks.
         */
        PlacementRecord: {
            role: string;
            index: number;
            node: string;
            devices: number[];
            host: string;
            ports: {
                [key: string]: number[];
            };
            state: string;
            rank: number | null;
            /** @description The task's fraction of its one device; null is the whole device. */
            share: components["schemas"]["ShareView"] | null;
        };
        /**
         * PlatformReport
         * @description The machines of a job, as its tasks found them before their commands began.
         */
        PlatformReport: {
            at: string;
            machines: components["schemas"]["MachineReport"][];
            /** @description In what machines differ that should be alike, in sentences. */
            differences: string[];
        };
        /**
         * PortsView
         * @description The ports of a running task, for users who may enter it.
         */
        PortsView: {
            ports: {
                [key: string]: number[];
            };
            /** @description For a notebook: the URL path after its port's address, with its token. */
            path: string;
        };
        /**
         * PreflightReport
         * @description What the tasks of a job's current attempt checked before their commands began.
         */
        PreflightReport: {
            attempt: number;
            /** @description What the job asks to be checked. */
            checks: string[];
            /** @description null until a task told what it measured. */
            network: components["schemas"]["NetworkReport"] | null;
            /** @description null until a task told what its machine is like. */
            platform: components["schemas"]["PlatformReport"] | null;
        };
        /**
         * ProblemView
         * @description One problem of a document; `line` and `column` count from 1, 0 is unknown.
         */
        ProblemView: {
            path: string;
            message: string;
            line: number;
            column: number;
            file: string;
        };
        /**
         * ProfileAdvice
         * @description One piece of advice, with the figure that led to it and the share of the time that it may save.
         */
        ProfileAdvice: {
            /** @enum {string} */
            subject: "data-loading" | "imbalance" | "communication" | "copies" | "device-use" | "stalls" | "memory-slack" | "one-thread" | "page-cache" | "disk" | "throttling" | "run-queue";
            figure: number;
            gain: number;
            /** @description The rank that it is about; "" for all. */
            rank: string;
            text: string;
            /**
             * @description What the gain is a share of: the time, or the memory that the task asked for.
             * @enum {string}
             */
            of: "time" | "memory";
        };
        /**
         * ProfileComparison
         * @description Two profiles of one kind: of traces the shares of time of all ranks, of samples the functions' own shares.
         */
        ProfileComparison: {
            /** @enum {string} */
            what: "python" | "stacks" | "torch" | "jax" | "tensorflow" | "memory" | "system";
            /** @description The profile that is compared with. */
            before: string;
            after: string;
            /** @description The greatest difference first. */
            differences: components["schemas"]["ProfileDifference"][];
        };
        /**
         * ProfileCurve
         * @description A figure over the time of a profile: the means of equally long spans, and the greatest single value.
         */
        ProfileCurve: {
            name: string;
            unit: string;
            points: number[];
            most: number;
        };
        /**
         * ProfileDifference
         * @description A share of the time in two profiles.
         */
        ProfileDifference: {
            name: string;
            before: number;
            after: number;
        };
        /**
         * ProfileFile
         * @description A file of a profile.
         */
        ProfileFile: {
            name: string;
            size: number;
        };
        /**
         * ProfileFrame
         * @description A rectangle of the flame graph: `begin` and `samples` are its place in the width of all samples.
         */
        ProfileFrame: {
            name: string;
            depth: number;
            begin: number;
            samples: number;
        };
        /**
         * ProfileFunction
         * @description A function's share of all samples: at the stack's top (`own`), and anywhere in the stack.
         */
        ProfileFunction: {
            name: string;
            own: number;
            total: number;
        };
        /**
         * ProfileList
         * @description Profiles, newest first, and what those of the user's jobs take of the quota.
         */
        ProfileList: {
            items: components["schemas"]["ProfileView"][];
            bytes: number;
            /** @description The quota in bytes; 0 is no limit. */
            mostBytes: number;
            /** @description After so many days a profile is removed. */
            days: number;
        };
        /**
         * ProfilePathPart
         * @description A part of the critical path over the ranks: what one of them did while the others waited for it.
         */
        ProfilePathPart: {
            rank: string;
            /** @enum {string} */
            part: "computing" | "exposed_communication" | "copies" | "data_waits" | "idle";
            seconds: number;
            /** @description Of the whole path. */
            share: number;
            /** @description The operators, kernels or collectives with most of that time. */
            names: string[];
        };
        /**
         * ProfilePlace
         * @description Threads of several ranks that have the same stack, innermost frame first.
         */
        ProfilePlace: {
            thread: string;
            active: boolean;
            frames: string[];
            ranks: string[];
        };
        /**
         * ProfileProblem
         * @description Why a process or a task is not in a profile, or only in part.
         */
        ProfileProblem: {
            rank: string;
            problem: string;
        };
        /**
         * ProfileReport
         * @description What was read of a profile; parts that its kind does not have are empty.
         */
        ProfileReport: {
            /** @enum {string} */
            what: "python" | "stacks" | "torch" | "jax" | "tensorflow" | "memory" | "system";
            ranks: string[];
            /** @description Where threads stand; the places of the fewest ranks come first. */
            places: components["schemas"]["ProfilePlace"][];
            /** @description How many samples the flame graph has; of memory, how many KiB grew. */
            samples: number;
            /** @description The functions with the most samples of their own; of memory, those beneath which it grew most. */
            functions: components["schemas"]["ProfileFunction"][];
            /** @description The flame graph, each frame before those below it. */
            frames: components["schemas"]["ProfileFrame"][];
            reports: components["schemas"]["RankTimes"][];
            imbalance: number;
            /** @description The greatest gain first. */
            advice: components["schemas"]["ProfileAdvice"][];
            /** @description The critical path over the ranks, the longest part first; empty where they have no collectives in common. */
            path: components["schemas"]["ProfilePathPart"][];
            memory: components["schemas"]["RankMemory"][];
            curves: components["schemas"]["RankCurves"][];
        };
        /**
         * ProfileTop
         * @description An operator, kernel or collective, with its whole time in seconds and its calls.
         */
        ProfileTop: {
            name: string;
            seconds: number;
            calls: number;
        };
        /**
         * ProfileView
         * @description A profile of a running job.
         */
        ProfileView: {
            id: string;
            job: string;
            jobName: string;
            /** @enum {string} */
            what: "python" | "stacks" | "torch" | "jax" | "tensorflow" | "memory" | "system";
            /** @description For how long samples are taken; 0 for stacks. */
            seconds: number;
            /** @enum {string} */
            state: "taking" | "reading" | "done" | "failed";
            takenBy: string;
            /** @description When it was asked for. */
            takenAt: string;
            /** @description When its samples begin: PyTorch's traces begin on all ranks at the same moment. */
            startsAt: string;
            tasks: string[];
            /** @description Processes of which something was read. */
            ranks: number;
            /** @description Why there is nothing in it; "" if there is. */
            problem: string;
            problems: components["schemas"]["ProfileProblem"][];
            files: components["schemas"]["ProfileFile"][];
            /** @description Bytes that are kept of it. */
            size: number;
        };
        /**
         * ProgressBody
         * @description What a program says of its work: the task attempt that it is, how long ago it said it, and the values.
         *
         *     Every value may be left out. `progress` is the fraction of the work that is done; without it, it is step / steps.
         */
        ProgressBody: {
            attempt: string;
            /** @default 0 */
            ageSeconds?: number;
            /** @default null */
            step?: number | null;
            /** @default null */
            steps?: number | null;
            /** @default null */
            progress?: number | null;
            /** @default null */
            throughput?: number | null;
            /** @default null */
            loss?: number | null;
            /** @default null */
            gradientNoise?: number | null;
            /** @default null */
            batchSize?: number | null;
            /** @default null */
            active?: number | null;
            /** @default null */
            waited?: number | null;
        };
        /**
         * PublicKey
         * @description A public key that is to be signed, without a comment.
         */
        PublicKey: {
            publicKey: string;
        };
        /**
         * QueueEstimates
         * @description How good the estimates of one queue were. Times are in seconds; a median is null where nothing is to be counted.
         */
        QueueEstimates: {
            queue: string;
            /** @description Estimates that were stored in this time. */
            given: number;
            /** @description The jobs that they are of. */
            jobs: number;
            /** @description Those whose job has started since. */
            started: number;
            /** @description Those whose job still waits; of these only those past their P90 are judged. */
            waiting: number;
            /** @description Those whose job ended without a start; they are not judged. */
            notStarted: number;
            /** @description Intervals from P10 to P90 in which the job started. */
            held: number;
            /** @description Intervals before which it started. */
            early: number;
            /** @description Intervals after which it started, or still waits. */
            late: number;
            /** @description The part of the judged intervals that held; 0.8 is aimed at. */
            coverage: number | null;
            /** @description The median of P90 - P10; null also when most reach beyond the horizon. */
            width: number | null;
            /** @description P90 - P10 of the waits themselves, from the estimate to the start: what an interval has to be narrower than. */
            pastWidth: number | null;
            /** @description The median of the start less P50; positive: jobs start later than they are told. */
            bias: number | null;
            /** @description The median of how far the start was from P50. */
            error: number | null;
        };
        /**
         * QueueFigures
         * @description One queue until the horizon, the mean over the seeds. Waits are in seconds; of jobs that still wait so far.
         */
        QueueFigures: {
            started: number;
            ended: number;
            preemptions: number;
            /** @description Jobs that wait at the horizon. */
            waiting: number;
            waitP50: number | null;
            waitP95: number | null;
            /** @description Devices in use, the mean over time. */
            devices: number;
            lent: number;
            borrowed: number;
        };
        /**
         * QueueHistory
         * @description Weeks of a queue, the latest first; the first is not over.
         */
        QueueHistory: {
            queue: string;
            weeks: components["schemas"]["QueueHistoryWeek"][];
            /** @description What the records do not tell. */
            unknown: string[];
        };
        /**
         * QueueHistoryWeek
         * @description One week of a queue with the queues below it; it begins on Monday in UTC.
         */
        QueueHistoryWeek: {
            /** @description Such as `2026-W48`. */
            week: string;
            begin: string;
            /** @description Jobs that started for the first time in it. */
            started: number;
            /** @description Seconds from submission to start; null where no job started. */
            waitP50: number | null;
            waitP95: number | null;
            /** @description Device-seconds that its jobs held. */
            used: number;
            /** @description Device-seconds beyond its own; null where the server kept no series. */
            borrowed: number | null;
            /** @description Device-seconds of its own that others held; null as above. */
            lent: number | null;
        };
        /**
         * QueueLimits
         * @description The most that may be held in a queue, by resource: by all its jobs, by one user's, by one group's.
         */
        QueueLimits: {
            /** @default {} */
            limit?: {
                [key: string]: string;
            };
            /** @default {} */
            userLimit?: {
                [key: string]: string;
            };
            /** @default {} */
            groupLimit?: {
                [key: string]: string;
            };
        };
        /**
         * QueueOutcome
         * @description One queue before and after the changes.
         */
        QueueOutcome: {
            name: string;
            before: components["schemas"]["QueueFigures"];
            after: components["schemas"]["QueueFigures"];
        };
        /**
         * QueueRow
         * @description One queue under both.
         */
        QueueRow: {
            queue: string;
            inForce: components["schemas"]["Figures"];
            candidate: components["schemas"]["Figures"];
        };
        /**
         * QueueStanding
         * @description One queue's entitlement and current use, including the queues below it.
         */
        QueueStanding: {
            name: string;
            parent: string;
            /** @description The number of queues above it. */
            depth: number;
            weight: number;
            /** @description Reserved for it, never lent. */
            guaranteed: {
                [key: string]: number;
            };
            /** @description Its own amounts, lent while idle. Devices of cells that it owns are in `ownedDevices` instead. */
            deserved: {
                [key: string]: number;
            };
            /** @description The most that it may hold. */
            limit: {
                [key: string]: number;
            };
            /** @description The most that it may hold above its deserved amounts. */
            borrowingLimit: {
                [key: string]: number;
            };
            used: {
                [key: string]: number;
            };
            /** @description Its fair share given the demand of all queues: its deserved amounts, plus a part by weight of the rest. */
            fair: {
                [key: string]: number;
            };
            /** @description Its use beyond its own amounts: beyond deserved, and for devices also beyond the cells that it owns. */
            borrowed: {
                [key: string]: number;
            };
            /** @description Its own devices that others use; devices only. */
            lent: {
                [key: string]: number;
            };
            /** @description The lent amounts by borrowing queue. */
            lentTo: {
                [key: string]: number;
            };
            /** @description The borrowed devices by owning queue; "" is devices that no queue owns. */
            borrowedFrom: {
                [key: string]: number;
            };
            cells: components["schemas"]["CellShare"][];
            /** @description The ids of its pinned cells. */
            pinned: string[];
            /** @description Devices in all cells that it owns. */
            ownedDevices: number;
            /** @description Jobs that hold resources. */
            running: number;
            /** @description Running jobs with tasks outside guaranteed cells; 0 if the queue owns no cells. */
            guests: number;
            /** @description Jobs that wait to start, wholly or in part. */
            waiting: number;
            /** @description The amounts that all waiting jobs need to begin. */
            wanted: {
                [key: string]: number;
            };
        };
        /**
         * QueueView
         * @description One queue, the numbers of its running and waiting jobs, and its entitlement and use.
         */
        QueueView: {
            name: string;
            running: number;
            waiting: number;
            devices: number;
            doc: Record<string, never>;
            /** @description The scheduler's figures, including the queues below it; None while it does not answer. */
            standing: components["schemas"]["QueueStanding"] | null;
            /** @description Whether only members of groups that grant or manage it may submit to it. */
            membersOnly: boolean;
            /** @description Whether the caller may submit jobs to it, and it takes new jobs. */
            maySubmit: boolean;
            /** @description Its managers besides administrators, at most 100; only in answers about a single queue. */
            managers: string[];
        };
        /**
         * RankCurves
         * @description The figures of one rank over time.
         */
        RankCurves: {
            rank: string;
            seconds: number;
            curves: components["schemas"]["ProfileCurve"][];
        };
        /**
         * RankMemory
         * @description The memory of one process in bytes, without swap.
         */
        RankMemory: {
            rank: string;
            /** @description At the end of the profile. */
            used: number;
            /** @description The most that it ever had. */
            peak: number;
            /** @description All growth of private memory, also where some was given back. */
            grown: number;
            /** @description By how much private memory was larger at the end; negative where it was smaller. */
            kept: number;
            /** @description By kind, the largest first. */
            holders: components["schemas"]["MemoryHolder"][];
            /** @description The largest mappings. */
            names: components["schemas"]["MemoryHolder"][];
        };
        /**
         * RankScore
         * @description The pace of one task beside its peers'.
         */
        RankScore: {
            task: string;
            node: string;
            /** @description The step that it reported last. */
            step: number;
            /** @description Over its last reports of at most five minutes; null until it has made two. */
            stepsPerSecond: number | null;
            /**
             * @description Its pace by the median of the others': 0.5 is half as fast; null without a peer to compare it with.
             *
             *     Where each task reports its waits, it is the pace that the task would have without waits for the others.
             */
            score: number | null;
            /** @description How long before the latest report of its gang its own was made. */
            behindSeconds: number;
            /** @description The part of the time of those reports in which it waited for other tasks; null unless it reports that. */
            waits: number | null;
        };
        /**
         * RankScores
         * @description The tasks of a running job that report their steps, the slowest first.
         */
        RankScores: {
            items: components["schemas"]["RankScore"][];
        };
        /**
         * RankTimeline
         * @description Equal spans of a rank's trace: the share of each that every part takes. The rest is idle.
         */
        RankTimeline: {
            computing: number[];
            exposedCommunication: number[];
            copies: number[];
            dataWaits: number[];
        };
        /**
         * RankTimes
         * @description What one rank did in the seconds of its trace; the parts from `computing` to `idle` add up to `seconds`.
         */
        RankTimes: {
            rank: string;
            seconds: number;
            computing: number;
            exposedCommunication: number;
            copies: number;
            dataWaits: number;
            idle: number;
            /** @description All communication, hidden or not. */
            communication: number;
            /** @description Whether the trace has a device's work; else computing is that of the processors. */
            device: boolean;
            steps: number;
            operators: components["schemas"]["ProfileTop"][];
            kernels: components["schemas"]["ProfileTop"][];
            collectives: components["schemas"]["ProfileTop"][];
            timeline: components["schemas"]["RankTimeline"];
        };
        /**
         * Readiness
         * @description Whether the server can answer calls, with the reasons if not, or if it is degraded.
         */
        Readiness: {
            ready: boolean;
            reasons: string[];
            /** @description Whether stored data can be read but something else does not work; `reasons` says what. */
            degraded: boolean;
        };
        /**
         * ReasonView
         * @description One constraint that keeps a job waiting, with the counts that show it.
         */
        ReasonView: {
            code: string;
            message: string;
            counts: {
                [key: string]: number;
            };
        };
        /**
         * ReasonsView
         * @description Why a job waits, the binding constraint first; `possible` is False if even an empty cluster could not hold it.
         */
        ReasonsView: {
            binding: components["schemas"]["ReasonView"];
            others: components["schemas"]["ReasonView"][];
            /** @description The number of gangs before it; in stored reasons, as of the time when the reason was found. */
            ahead: number;
            possible: boolean;
        };
        /**
         * ReceiptView
         * @description One receipt; `state` is `away`, `returned` or `ended`, `awaySeconds` the time without its devices.
         */
        ReceiptView: {
            id: string;
            job: string;
            name: string;
            user: string;
            queue: string;
            attempt: number;
            rule: string;
            message: string;
            at: string;
            /** @enum {string} */
            state: "away" | "returned" | "ended";
            devices: number;
            tasks: string[];
            byJob: string;
            byQueue: string;
            byUser: string;
            costDeviceSeconds: number;
            backAt: string | null;
            returnedAt: string | null;
            /** @description None if the job ended without coming back. */
            awaySeconds: number | null;
        };
        /**
         * ResumeBody
         * @description The queue in which the job goes on; "" is its own.
         */
        ResumeBody: {
            /** @default  */
            queue?: string;
        };
        /**
         * RoleEfficiency
         * @description The tasks of one role.
         */
        RoleEfficiency: {
            role: string;
            /** @description Tasks that ran in the time of the report. */
            tasks: number;
            /** @description Those of them with figures. */
            measuredTasks: number;
            deviceSeconds: number;
            /** @description The part in attempts that failed, were preempted, or were lost with their node. */
            lostDeviceSeconds: number;
            /** @description The device-seconds times the mean use of the devices; null where no use was measured. */
            usedDeviceSeconds: number | null;
            taskSeconds: number;
            /** @description The mean use of the devices. */
            devicePercent: number | null;
            /** @description The most memory of a device that was in use. */
            deviceMemoryPercent: number | null;
            /** @description What each task asked for. */
            asked: components["schemas"]["TaskAmounts"];
            /** @description What a task used on average; of devices, how many whole ones. */
            mean: components["schemas"]["TaskAmounts"];
            /** @description The most that a task used; of devices, how many were ever in use. */
            most: components["schemas"]["TaskAmounts"];
            /** @description A smaller request that would have done; null where what was asked fits, or nothing can be said. */
            wouldDo: components["schemas"]["TaskAmounts"];
        };
        /**
         * RoleView
         * @description One role of a job: the number of tasks it should have (`target`), and task counts by state.
         *
         *     `stopped` are tasks that were asked to end; they are not among `failed`.
         */
        RoleView: {
            name: string;
            replicas: number;
            target: number;
            total: number;
            waiting: number;
            running: number;
            succeeded: number;
            failed: number;
            stopped: number;
            elastic: boolean;
            minReplicas: number;
            maxReplicas: number;
        };
        /**
         * RollbackRequest
         * @description The revision to make the current one again.
         */
        RollbackRequest: {
            revision: number;
        };
        /**
         * RunningShadow
         * @description The running shadow of a server, or the last one that ended.
         */
        RunningShadow: {
            /** @enum {string} */
            state: "running" | "done" | "failed" | "stopped";
            candidate: string;
            /** @description Who began it. */
            user: string;
            askedAt: string;
            /** @description From when on both are compared. */
            begin: string;
            /** @description When it ends by itself. */
            end: string;
            anew: boolean;
            /** @description Up to when its report goes; None: there is none yet. */
            reportedAt: string | null;
            /** @description When the next report is made; None: it has ended, or one is being made. */
            nextAt: string | null;
            /** @description How far the report is that is being made. */
            progress: components["schemas"]["WhatIfProgress"] | null;
            /** @description Why the last report could not be made, though it goes on. */
            trouble: string;
            /** @description Why it failed. */
            error: components["schemas"]["WhatIfRefusal"] | null;
        };
        /**
         * RunningShadowRequest
         * @description A candidate that the server lets decide beside its policy from now on, hour by hour.
         */
        RunningShadowRequest: {
            /**
             * @description `NAME` or `NAME+PART`; "": that of the documents.
             * @default
             */
            policy?: string;
            /**
             * @description Documents as `corral apply` takes them, instead of those in force; "": those in force.
             * @default
             */
            documents?: string;
            /**
             * @description When the candidate begins; "": now.
             * @default
             */
            since?: string;
            /**
             * @description After how many hours from its beginning on it ends by itself.
             * @default 168
             */
            hours?: number;
            /**
             * @description Whether the candidate begins each hour with what is in force then.
             * @default false
             */
            anew?: boolean;
            /**
             * @description Seconds by which equal decisions may differ.
             * @default 60
             */
            within?: number;
            /**
             * @description How many decisions that differ are listed.
             * @default 20
             */
            differences?: number;
        };
        /**
         * SavedFilter
         * @description A filter of the list of jobs; a field that is empty filters nothing.
         */
        SavedFilter: {
            name: string;
            /** @default [] */
            state?: ("waiting" | "starting" | "running" | "stopping" | "succeeded" | "failed" | "stopped")[];
            /** @default  */
            user?: string;
            /** @default  */
            queue?: string;
            /**
             * @description A part of the name, or the beginning of the id.
             * @default
             */
            q?: string;
            /** @default  */
            tag?: string;
            /**
             * @default
             * @enum {string}
             */
            order?: "" | "newest" | "oldest" | "name" | "priority" | "ended";
            /**
             * @description What the portal's list gathers jobs by.
             * @default
             * @enum {string}
             */
            group?: "" | "user" | "sweep";
            /**
             * @description A priority class, with those above it; `oppo` is what is below 0.
             * @default
             * @enum {string}
             */
            priority?: "" | "crit" | "prod" | "test" | "oppo";
        };
        /**
         * ScalarBody
         * @description A value of a curve, and how long before the report it was written, in seconds.
         */
        ScalarBody: {
            run: string;
            tag: string;
            ageSeconds: number;
            value: number;
        };
        /**
         * ScalarsBody
         * @description Values from the event files of a task attempt, and how long ago the report was made.
         */
        ScalarsBody: {
            attempt: string;
            scalars: components["schemas"]["ScalarBody"][];
            /** @default 0 */
            ageSeconds?: number;
        };
        /**
         * Scale
         * @description The size to set for an elastic job.
         */
        Scale: {
            replicas: number;
            /** @default  */
            role?: string;
        };
        /**
         * SecretValue
         * @description The value of a secret, to be stored encrypted.
         */
        SecretValue: {
            value: string;
        };
        /**
         * SecretView
         * @description One sealed secret of the caller, without its value.
         */
        SecretView: {
            name: string;
            updatedAt: string;
        };
        /**
         * SeriesAnswer
         * @description Series on a common grid of times.
         */
        SeriesAnswer: {
            /** @description When the first step begins. */
            begin: string;
            /** @description When the last step ends. */
            end: string;
            /** @description The length of a step in seconds. */
            step: number;
            items: components["schemas"]["SeriesView"][];
            /** @description Further series that fit the question. */
            leftOut: number;
        };
        /**
         * SeriesView
         * @description One series; its columns have one value for each step, and null where there is none.
         */
        SeriesView: {
            family: string;
            labels: {
                [key: string]: string;
            };
            mean: (number | null)[];
            /** @description The least value of each step. */
            low: (number | null)[];
            /** @description The greatest value of each step. */
            high: (number | null)[];
        };
        /**
         * ServerPart
         * @description One part of the server.
         */
        ServerPart: {
            /**
             * @description An agent is `corral node-agent` on another machine, whose figures the scheduler asks for. The machine is the
             *     scheduler's own; containers and exporters are what runs there: what starts containers of jobs, and what is read
             *     instead of measuring.
             * @enum {string}
             */
            kind: "front" | "scheduler" | "store" | "engine" | "agent" | "machine" | "containers" | "exporter";
            name: string;
            /**
             * @description `degraded` works with the `reasons` as limits; `away` does not answer.
             * @enum {string}
             */
            state: "ok" | "degraded" | "away";
            /** @description "" where the part tells none; of a machine that of its kernel. */
            version: string;
            /** @description What does not work, one sentence each. */
            reasons: string[];
            /** @description Of a machine and of an agent's: its operating system, its kernel and drivers of devices, with their versions. */
            runsOn: string[];
        };
        /**
         * ServiceView
         * @description A port of a running task that the job file declares, which a browser may open.
         */
        ServiceView: {
            task: string;
            name: string;
            port: number;
        };
        /**
         * ServicesView
         * @description The services of the first running tasks of a job.
         */
        ServicesView: {
            items: components["schemas"]["ServiceView"][];
        };
        /**
         * ShadowComparisons
         * @description The caller's own comparisons that this server keeps, oldest first.
         */
        ShadowComparisons: {
            items: components["schemas"]["ShadowStatus"][];
        };
        /**
         * ShadowReport
         * @description A candidate beside the policy in force.
         */
        ShadowReport: {
            begin: string;
            end: string;
            /** @description The policy that decided at the beginning. */
            inForce: string;
            candidate: string;
            /** @description Seconds by which decisions that are alike may differ. */
            within: number;
            /** @description By kind. */
            decisions: {
                [key: string]: components["schemas"]["Counts"];
            };
            /** @description Decisions of the last seconds, of which is not known whether both make them. */
            undecided: number;
            hours: components["schemas"]["HourRow"][];
            total: components["schemas"]["HourRow"];
            /** @description The first ones. */
            differences: components["schemas"]["Difference"][];
            /** @description Later decisions that one of both made alone. */
            differencesLeftOut: number;
            /** @description Jobs that start earlier under the candidate, by more than `within`. */
            earlier: number;
            later: number;
            same: number;
            gains: components["schemas"]["Moved"][];
            losses: components["schemas"]["Moved"][];
            assumptions: string[];
            notes: string[];
            /** @description Why it ends early, in one sentence; "" if it does not. */
            problem: string;
        };
        /**
         * ShadowRequest
         * @description A candidate that decides beside the server's policy, on the inputs of its journal.
         */
        ShadowRequest: {
            /**
             * @description `NAME` or `NAME+PART`; "": that of the documents.
             * @default
             */
            policy?: string;
            /**
             * @description Documents as `corral apply` takes them, instead of those in force; "": those in force.
             * @default
             */
            documents?: string;
            /**
             * @description When the candidate begins; "": a day ago.
             * @default
             */
            since?: string;
            /**
             * @description Up to when both are compared; "": until now.
             * @default
             */
            until?: string;
            /**
             * @description Whether the candidate begins each hour with what is in force then.
             * @default false
             */
            anew?: boolean;
            /**
             * @description Seconds by which equal decisions may differ.
             * @default 60
             */
            within?: number;
            /**
             * @description How many decisions that differ are listed.
             * @default 20
             */
            differences?: number;
        };
        /**
         * ShadowStatus
         * @description A comparison that a server makes.
         */
        ShadowStatus: {
            id: string;
            /** @enum {string} */
            state: "running" | "done" | "failed" | "cancelled";
            askedAt: string;
            progress: components["schemas"]["WhatIfProgress"];
            /** @description Once it is done; lists and events have none. */
            answer: components["schemas"]["ShadowReport"] | null;
            /** @description Once it has failed. */
            error: components["schemas"]["WhatIfRefusal"] | null;
        };
        /**
         * ShareView
         * @description The fraction of a device that a task has, in percent.
         */
        ShareView: {
            computePercent: number;
            memoryPercent: number;
        };
        /**
         * SharedQueue
         * @description A queue of the cluster's own scheduler.
         */
        SharedQueue: {
            /** @description With the queues above it: `root.research`. */
            name: string;
            state: string;
            /** @description Percent of the whole cluster that it is promised. */
            capacity: number;
            /** @description Percent of the whole cluster that its applications use, Corral's among them. */
            usedPercent: number;
            used: components["schemas"]["Amounts"];
            /** @description Applications that run in it; `pending` wait. */
            running: number;
            pending: number;
            /** @description Whether Corral puts jobs into it: by the engine's settings, or at present. */
            corral: boolean;
        };
        /**
         * SharedTemplate
         * @description A template that was just stored.
         */
        SharedTemplate: {
            type: string;
            name: string;
            version: string;
            /** @description The account that shared its first version. */
            contributor: string;
        };
        /**
         * SignedIn
         * @description A new token, shown only once.
         */
        SignedIn: {
            token: string;
            user: string;
            role: string;
            expiresAt: string;
        };
        /**
         * SilenceBody
         * @description A silence: matchers such as `alertname=~"Node.*"`, its length in seconds, and its reason.
         */
        SilenceBody: {
            matchers: string[];
            seconds: number;
            reason: string;
        };
        /**
         * SilenceList
         * @description The silences that have not ended.
         */
        SilenceList: {
            items: components["schemas"]["SilenceView"][];
        };
        /**
         * SilenceView
         * @description A silence: alerts that meet all its matchers are told to nobody until it ends.
         */
        SilenceView: {
            id: string;
            /** @description Such as `alertname=~"Node.*"`; the operators are =, !=, =~ and !~. */
            matchers: string[];
            by: string;
            reason: string;
            begins: string;
            ends: string;
        };
        /**
         * Spread
         * @description Quantiles over the seeds, in seconds; null: later than the horizon, or never.
         */
        Spread: {
            p10: number | null;
            p50: number | null;
            p90: number | null;
        };
        /**
         * SshAccessView
         * @description A certificate with which the owner of a key may enter a running task by SSH, for a few minutes.
         */
        SshAccessView: {
            job: string;
            task: string;
            /** @description The public key of the cluster, as a line of `known_hosts` has it after the host. */
            hostKey: string;
            certificate: string;
            expiresAt: string;
        };
        /**
         * Stay
         * @description A job on devices of one node. Times are in seconds from now.
         */
        Stay: {
            /** @description Its id. */
            job: string;
            name: string;
            user: string;
            queue: string;
            node: string;
            /** @description Indexes of the node's devices. */
            devices: number[];
            begin: number;
            /** @description Null: after the horizon. */
            end: number | null;
        };
        /**
         * StorageView
         * @description A storage that the caller may use.
         */
        StorageView: {
            name: string;
            type: string;
            description: string;
            /** @description Whether all users share one folder; otherwise each has a folder of their own. */
            share: boolean;
            readOnly: boolean;
            /** @description Whether the caller's jobs mount it by default. */
            default: boolean;
            /** @description Whether the server can read its folder. */
            browsable: boolean;
            /** @description For administrators: the groups that grant it. */
            groups: string[];
        };
        /**
         * TagChange
         * @description Tags to add to a job, and tags to remove from it.
         */
        TagChange: {
            /** @default [] */
            add?: string[];
            /** @default [] */
            remove?: string[];
        };
        /**
         * TakeBody
         * @description Which profile to take: of which tasks (none: all that run, at most 64), and for how many seconds.
         */
        TakeBody: {
            /** @default python */
            what?: string;
            /** @default 0 */
            seconds?: number;
            /** @default [] */
            tasks?: string[];
        };
        /**
         * Taken
         * @description How many alerts the webhook took.
         */
        Taken: {
            firing: number;
            resolved: number;
        };
        /**
         * TaskAmounts
         * @description Amounts of one task; null is what nobody asked for, measured or can say.
         */
        TaskAmounts: {
            devices: number | null;
            cpus: number | null;
            memoryBytes: number | null;
        };
        /**
         * TaskCounts
         * @description Task counts of a job or role by state; `waiting` includes tasks that are starting.
         *
         *     `stopped` are tasks that were asked to end, by a person or because the job was over; they are not among `failed`.
         */
        TaskCounts: {
            total: number;
            waiting: number;
            running: number;
            succeeded: number;
            failed: number;
            stopped: number;
        };
        /**
         * TaskRecord
         * @description One task of a job's current attempt; `state` is the launcher's task state.
         */
        TaskRecord: {
            role: string;
            index: number;
            state: string;
            attempt: number;
            node: string;
            devices: number[];
            host: string;
            ports: {
                [key: string]: number[];
            };
            startedAt: string | null;
            endedAt: string | null;
            exit: components["schemas"]["ExitView"] | null;
            retries: number;
            /** @description The retries that count against maxRetries. */
            countedRetries: number;
            /** @description When its next attempt begins, while it waits for a delayed retry. */
            retryAt: string | null;
            createdAt: string | null;
            /** @description Its fraction of its one device; null is the whole device. */
            share: components["schemas"]["ShareView"] | null;
        };
        /**
         * TemplateDetail
         * @description One template in one of its versions.
         */
        TemplateDetail: {
            owner: string;
            changedAt: string;
            mayChange: boolean;
            /** @description The newest first. */
            versions: string[];
            /** @description The template as it was sent, with its `version`. */
            item: Record<string, never>;
        };
        /**
         * TemplateItem
         * @description A template to share. Fields beside these are kept as they are.
         */
        TemplateItem: {
            /** @description `job`, `dockerimage`, `script`, `data` or `output`. */
            type: string;
            name: string;
            /** @default  */
            description?: string;
            /**
             * @description Markdown.
             * @default
             */
            introduction?: string;
            /** @default  */
            contributor?: string;
            /** @default [] */
            categories?: string[];
            /** @default [] */
            tags?: string[];
            /** @default true */
            isPublic?: boolean;
            /**
             * @description Where it is not public: the groups that see it.
             * @default []
             */
            groupList?: string[];
            /**
             * @description Pictures as data URIs, by the address that the text has for each.
             * @default {}
             */
            pictures?: {
                [key: string]: string;
            };
            /**
             * @description A job file.
             * @default
             */
            file?: string;
        };
        /**
         * TemplatePage
         * @description A page of templates, the best matches first.
         */
        TemplatePage: {
            totalCount: number;
            pageNo: number;
            pageSize: number;
            items: components["schemas"]["TemplateView"][];
        };
        /**
         * TemplateView
         * @description A template in a list.
         */
        TemplateView: {
            type: string;
            name: string;
            contributor: string;
            version: string;
            description: string | null;
            owner: string;
            isPublic: boolean;
            groupList: string[];
            /** @description Its categories and tags. */
            tags: string[];
            hasPicture: boolean;
        };
        /**
         * TensorBoardBody
         * @description The jobs whose outputs are shown together.
         */
        TensorBoardBody: {
            jobs: string[];
        };
        /**
         * Timeline
         * @description What runs where, as things are and with the changes, in the courses of the first seed.
         */
        Timeline: {
            /** @description The nodes with devices, at most 500. */
            nodes: components["schemas"]["TimelineNode"][];
            before: components["schemas"]["Stay"][];
            after: components["schemas"]["Stay"][];
            /** @description Stays that are not told: those after the first 2,000 of a course, and those on nodes that are not told. */
            leftOut: number;
        };
        /**
         * TimelineNode
         * @description A node of a timeline, and how many devices it has.
         */
        TimelineNode: {
            name: string;
            devices: number;
        };
        /**
         * TokenRequest
         * @description An API token to create: its purpose, and the number of days that it is valid.
         */
        TokenRequest: {
            /** @default  */
            name?: string;
            /** @default 90 */
            days?: number;
        };
        /**
         * TokenView
         * @description One token of the caller; the secret itself is only in `NewToken`.
         */
        TokenView: {
            id: string;
            name: string;
            kind: string;
            user: string;
            createdAt: string;
            expiresAt: string | null;
            lastUsedAt: string | null;
        };
        /**
         * ToldAlert
         * @description An alert as Alertmanager tells it.
         */
        ToldAlert: {
            status: string;
            labels: {
                [key: string]: string;
            };
            /** @default {} */
            annotations?: {
                [key: string]: string;
            };
            /** @default  */
            startsAt?: string;
            /** @default  */
            endsAt?: string;
        };
        /**
         * Top
         * @description The live table: totals, and the running jobs with the devices they hold.
         */
        Top: {
            at: string;
            total: components["schemas"]["Amounts"];
            free: components["schemas"]["Amounts"];
            waiting: number;
            running: number;
            jobs: components["schemas"]["JobSummary"][];
        };
        /**
         * TopUpBody
         * @description Device-hours to add to a budget for its present window.
         */
        TopUpBody: {
            deviceHours: number;
            reason: string;
        };
        /**
         * TopUpView
         * @description Device-hours that somebody added to a budget for this window.
         */
        TopUpView: {
            deviceHours: number;
            at: string;
            actor: string;
            reason: string;
        };
        /**
         * Trial
         * @description The result of a dry run: the canonical document, whether it would start now, and the reasons if not.
         */
        Trial: {
            document: components["schemas"]["JobDocument"];
            /** @description None: unknown, because no scheduler answers. */
            wouldStart: boolean | null;
            reasons: components["schemas"]["ReasonsView"] | null;
            /** @description Documents of the file that belong to other programs and were left out. */
            notes: string[];
        };
        /**
         * UploadProgress
         * @description How far the upload of an archive is.
         */
        UploadProgress: {
            digest: string;
            /** @description Bytes that the server has. */
            size: number;
            /** @description Whether the archive is whole, checked and stored. */
            complete: boolean;
        };
        /**
         * Uploaded
         * @description A stored blob.
         */
        Uploaded: {
            digest: string;
            size: number;
        };
        /**
         * UsageReport
         * @description The use from one time to another.
         */
        UsageReport: {
            begin: string;
            end: string;
            by: string;
            total: components["schemas"]["UsageRow"];
            /** @description The largest first. */
            items: components["schemas"]["UsageRow"][];
            /** @description Further rows, which are in the total alone. */
            leftOut: number;
            /** @description Of the costs, by ISO 4217; "" where there are no prices. */
            currency: string;
        };
        /**
         * UsageRow
         * @description The use of one user, queue, job, tag, node or device model.
         */
        UsageRow: {
            /**
             * @description Its name, of a job its id.
             *
             *     "" has no name: jobs without a tag, jobs that were removed since, or devices of no known model.
             */
            key: string;
            /** @description The name of a job. */
            name: string;
            /** @description Seconds of whole devices; half a device for two seconds is one. */
            deviceSeconds: number;
            /** @description The part in attempts that failed, were preempted, or were lost with their node. */
            lostDeviceSeconds: number;
            taskSeconds: number;
            /** @description Seconds of the processors that the tasks asked for, not of those that they used. */
            cpuSeconds: number;
            /** @description Seconds of the memory that the tasks asked for, in GiB. */
            memoryGibSeconds: number;
            /** @description The part of the tasks' seconds in which they were measured; what follows is of this part alone. */
            measuredTaskSeconds: number;
            /** @description Seconds of processors that the tasks used. */
            usedCpuSeconds: number;
            /** @description Seconds of memory that the tasks used, in GiB. */
            usedMemoryGibSeconds: number;
            /** @description Energy of the devices that the tasks held, where these tell their power. */
            energyJoules: number;
            /** @description The part of the devices' seconds in which their use was measured; what follows is of this part alone. */
            measuredDeviceSeconds: number;
            /** @description Seconds of devices by their use: a device of which 40 % are in use for ten seconds counts four. */
            usedDeviceSeconds: number;
            /** @description Seconds of devices whose use was below 5 %, in attempts that are not lost: with the lost ones all that was wasted. */
            idleDeviceSeconds: number;
            /** @description What it costs by the Prices document; null where there is none. */
            cost: number | null;
        };
        /**
         * UseOverTime
         * @description The whole cluster over time; the mean over the seeds at each time.
         */
        UseOverTime: {
            /** @description Devices that tasks can use. */
            devices: number;
            used: number[];
            /** @description Jobs that wait. */
            waiting: number[];
        };
        /**
         * UserChange
         * @description A change of an account; None leaves a field as it is.
         */
        UserChange: {
            /** @default null */
            role?: string | null;
            /** @default null */
            groups?: string[] | null;
            /** @default null */
            password?: string | null;
            /**
             * @description Needed when users change their own password, unless they have just signed in.
             * @default
             */
            oldPassword?: string;
            /**
             * @description Whether the account's API tokens stay valid after a change of password.
             * @default false
             */
            keepTokens?: boolean;
            /** @default null */
            disabled?: boolean | null;
            /**
             * @description The highest priority of the account's jobs; "" leaves it to the account's groups.
             * @default null
             */
            maxPriority?: number | "" | null;
            /**
             * @description "" removes the address.
             * @default null
             */
            email?: string | null;
        };
        /**
         * UserChanged
         * @description One account after a change.
         */
        UserChanged: {
            name: string;
            role: string;
            groups: string[];
            uid: number | null;
            createdAt: string;
            disabled: boolean;
            hasPassword: boolean;
            /** @description Its folder on storages with one folder per user; unique even if a deleted account had its name. */
            folder: string;
            /** @description The highest priority of its jobs; null: its groups decide. */
            maxPriority: number | null;
            email: string;
            /** @description After a new password: the sessions and tokens that it ended, and the tokens that are still valid. */
            notice: string;
        };
        /**
         * UserFairness
         * @description One user whose jobs succeeded in the week.
         */
        UserFairness: {
            user: string;
            jobs: number;
            rhoP50: number;
            worstRho: number;
            worstJob: string;
        };
        /**
         * UserView
         * @description One account.
         */
        UserView: {
            name: string;
            role: string;
            groups: string[];
            uid: number | null;
            createdAt: string;
            disabled: boolean;
            hasPassword: boolean;
            /** @description Its folder on storages with one folder per user; unique even if a deleted account had its name. */
            folder: string;
            /** @description The highest priority of its jobs; null: its groups decide. */
            maxPriority: number | null;
            email: string;
        };
        /**
         * Validation
         * @description Whether a document is valid and, if so, its canonical form.
         */
        Validation: {
            valid: boolean;
            problems: components["schemas"]["ProblemView"][];
            document: components["schemas"]["JobDocument"] | null;
            /** @description Documents of the file that belong to other programs and were left out. */
            notes: string[];
        };
        /**
         * VersionView
         * @description The server's version and features.
         */
        VersionView: {
            version: string;
            api: string;
            features: string[];
        };
        /**
         * WaitingLine
         * @description One page of the waiting list of `total` jobs; pass `next` as `after` to read the next page.
         */
        WaitingLine: {
            at: string;
            total: number;
            items: components["schemas"]["LineEntry"][];
            next: string | null;
            /** @description The forecast from which the estimates come; None if there is none yet. */
            forecast: components["schemas"]["ForecastView"] | null;
        };
        /**
         * WaitingView
         * @description Why a job waits: the binding constraint, and the number of gangs ahead of it.
         */
        WaitingView: {
            code: string;
            message: string;
            /** @description As of the time when the reason was found; `explain` counts again. */
            ahead: number;
            /** @description Whether the machines known at that time could hold the job if they were empty. */
            possible: boolean;
        };
        /**
         * WebhookCall
         * @description A call of the webhook: of Alertmanager's fields, those that are read; any others are ignored.
         */
        WebhookCall: {
            alerts: components["schemas"]["ToldAlert"][];
        };
        /**
         * WhatIfAnswer
         * @description What is to be expected as things are, beside what is to be expected with the changes.
         */
        WhatIfAnswer: {
            at: string;
            /** @description The last request of a user that the answer knows of. */
            cursor: number;
            horizonSeconds: number;
            seeds: number;
            /** @description The changes, each as a clause. */
            changes: string[];
            /** @description What was assumed, each as a sentence. */
            assumptions: string[];
            queues: components["schemas"]["QueueOutcome"][];
            /** @description The waiting and the submitted jobs, in their order: the first 1,000, and those that gain or lose most. */
            jobs: components["schemas"]["JobOutcome"][];
            jobsLeftOut: number;
            /** @description The ids of those that start earlier by most (P50), at most ten. */
            gains: string[];
            /** @description The ids of those that start later by most, at most ten. */
            losses: string[];
            /** @description Seconds from now of the following. */
            times: number[];
            before: components["schemas"]["UseOverTime"];
            after: components["schemas"]["UseOverTime"];
            /** @description Where it was asked for. */
            timeline: components["schemas"]["Timeline"] | null;
            /** @description Where the question had a goal. */
            goal: components["schemas"]["GoalOutcome"] | null;
            /** @description The revision of the state that it looks at; forecasts of equal revision and seeds say the same as `before`. */
            revision: string;
        };
        /**
         * WhatIfProgress
         * @description How far a question is.
         */
        WhatIfProgress: {
            /** @description Of the courses that are played, from 0 to 1; with a goal, of the most attempts that its search may take. */
            fraction: number;
            /** @enum {string} */
            stage: "waiting" | "preparing" | "reading" | "before" | "after" | "comparing";
            /** @description The number of the course that is played, from 1; 0 before the first one. */
            course: number;
            /** @description How many courses are played, each before and after the changes. */
            courses: number;
            /** @description The number of the value that the search for a goal tries, from 1; 0 without a goal. */
            attempt: number;
            mostAttempts: number;
            /** @description The value that is tried, in words. */
            trying: string;
            /** @description All of it as a sentence. */
            says: string;
        };
        /**
         * WhatIfQuestions
         * @description The caller's own questions that this server keeps, oldest first.
         */
        WhatIfQuestions: {
            items: components["schemas"]["WhatIfStatus"][];
        };
        /**
         * WhatIfRefusal
         * @description Why a question has no answer: the error that it would have had at once.
         */
        WhatIfRefusal: {
            /** @description The HTTP status of the error. */
            status: number;
            code: string;
            message: string;
            /** @description The problems of its documents. */
            problems: components["schemas"]["ProblemView"][];
        };
        /**
         * WhatIfRequest
         * @description Changes to try, and how far to look ahead; without changes the answer says what is to be expected.
         */
        WhatIfRequest: {
            /** @default [] */
            addNodes?: components["schemas"]["AddedNodes"][];
            /**
             * @description Nodes that are drained at once and do not come back.
             * @default []
             */
            removeNodes?: string[];
            /**
             * @description Nodes that take no new tasks, and whose tasks run elsewhere.
             * @default []
             */
            drain?: string[];
            /**
             * @description By queue, the changed fields of its document (`{"research": {"deserved": {"devices": 16}}}`); objects are merged.
             * @default {}
             */
            queues?: {
                [key: string]: Record<string, never>;
            };
            /**
             * @description Documents as `corral apply` takes them.
             * @default
             */
            documents?: string;
            /** @default [] */
            submit?: components["schemas"]["AddedJobs"][];
            /**
             * @description Jobs that are stopped now, by name or id.
             * @default []
             */
            stop?: string[];
            /**
             * @description By waiting job, its new priority: a class or a number.
             * @default {}
             */
            priorities?: {
                [key: string]: string | number;
            };
            /**
             * @description The preset, or the order, of the scheduling policy.
             * @default
             */
            policy?: string;
            /** @default 86400 */
            horizonSeconds?: number;
            /**
             * @description How many courses are drawn; more than one tell how sure the answer is.
             * @default 1
             */
            seeds?: number;
            /**
             * @description The first seed.
             * @default 0
             */
            seed?: number;
            /**
             * @description Whether the answer tells what runs where, in the courses of the first seed.
             * @default false
             */
            timeline?: boolean;
            /**
             * @description `last-week`: jobs arrive as in the same hours of the week in the server's journal; "": nobody else submits.
             * @default
             */
            arrivals?: string;
            /**
             * @description An assertion that is to hold after the changes: `wait.p95(queue=research) <= 1h`; needs `vary`.
             * @default
             */
            goal?: string;
            /**
             * @description What is raised until the goal holds: `nodes-like=local/node1` or `queue=research:deserved.devices`.
             * @default
             */
            vary?: string;
        };
        /**
         * WhatIfStatus
         * @description A question that is answered later.
         */
        WhatIfStatus: {
            id: string;
            /** @enum {string} */
            state: "running" | "done" | "failed" | "cancelled";
            askedAt: string;
            progress: components["schemas"]["WhatIfProgress"];
            /** @description Once it is done; lists and events have none. */
            answer: components["schemas"]["WhatIfAnswer"] | null;
            /** @description Once it has failed. */
            error: components["schemas"]["WhatIfRefusal"] | null;
        };
        /**
         * WhenUsedUp
         * @description What becomes of jobs that run while a budget is used up.
         * @enum {unknown}
         */
        WhenUsedUp: "hold" | "warn";
        /**
         * WorkView
         * @description What a job's program last said of its work; null: not said.
         */
        WorkView: {
            /** @description When it said it. */
            at: string;
            /** @description The fraction of its work that is done, from 0 to 1. */
            progress: number | null;
            step: number | null;
            /** @description The steps of the whole work. */
            steps: number | null;
            /** @description Work per second, in the job's own unit. */
            throughput: number | null;
            loss: number | null;
            /** @description The gradient noise scale, in examples. */
            gradientNoise: number | null;
            /** @description Examples of one step, of all tasks together. */
            batchSize: number | null;
            /** @description 1 while somebody works in the job, such as in the kernels of a notebook; 0 while nobody does. */
            active: number | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type AccountUse = components['schemas']['AccountUse'];
export type AddedJobs = components['schemas']['AddedJobs'];
export type AddedNodes = components['schemas']['AddedNodes'];
export type AlertList = components['schemas']['AlertList'];
export type AlertView = components['schemas']['AlertView'];
export type Amount = components['schemas']['Amount'];
export type Amounts = components['schemas']['Amounts'];
export type Applied = components['schemas']['Applied'];
export type AppliedDocument = components['schemas']['AppliedDocument'];
export type ArrayView = components['schemas']['ArrayView'];
export type AttemptRecord = components['schemas']['AttemptRecord'];
export type AuditRecord = components['schemas']['AuditRecord'];
export type Batch = components['schemas']['Batch'];
export type BatchLine = components['schemas']['BatchLine'];
export type BenchmarkChange = components['schemas']['BenchmarkChange'];
export type BenchmarkComparison = components['schemas']['BenchmarkComparison'];
export type BenchmarkHistory = components['schemas']['BenchmarkHistory'];
export type BenchmarkMetric = components['schemas']['BenchmarkMetric'];
export type BenchmarkNodeResult = components['schemas']['BenchmarkNodeResult'];
export type BenchmarkOverview = components['schemas']['BenchmarkOverview'];
export type BenchmarkPoint = components['schemas']['BenchmarkPoint'];
export type BenchmarkResults = components['schemas']['BenchmarkResults'];
export type BenchmarkRunResults = components['schemas']['BenchmarkRunResults'];
export type BenchmarkRunView = components['schemas']['BenchmarkRunView'];
export type BenchmarkStanding = components['schemas']['BenchmarkStanding'];
export type BenchmarkStandings = components['schemas']['BenchmarkStandings'];
export type BenchmarkWays = components['schemas']['BenchmarkWays'];
export type BenchmarkedNode = components['schemas']['BenchmarkedNode'];
export type BudgetBody = components['schemas']['BudgetBody'];
export type BudgetList = components['schemas']['BudgetList'];
export type BudgetView = components['schemas']['BudgetView'];
export type CacheBundle = components['schemas']['CacheBundle'];
export type CacheList = components['schemas']['CacheList'];
export type CacheOffer = components['schemas']['CacheOffer'];
export type CacheUse = components['schemas']['CacheUse'];
export type CacheUseBody = components['schemas']['CacheUseBody'];
export type CellDevice = components['schemas']['CellDevice'];
export type CellShare = components['schemas']['CellShare'];
export type CellState = components['schemas']['CellState'];
export type CellTree = components['schemas']['CellTree'];
export type CellView = components['schemas']['CellView'];
export type ChangeView = components['schemas']['ChangeView'];
export type ChannelChange = components['schemas']['ChannelChange'];
export type ChannelView = components['schemas']['ChannelView'];
export type Charge = components['schemas']['Charge'];
export type ChargePage = components['schemas']['ChargePage'];
export type CheckpointBody = components['schemas']['CheckpointBody'];
export type ClusterUse = components['schemas']['ClusterUse'];
export type CodeGiven = components['schemas']['CodeGiven'];
export type CordonBody = components['schemas']['CordonBody'];
export type CordonView = components['schemas']['CordonView'];
export type Counts = components['schemas']['Counts'];
export type DeviceScore = components['schemas']['DeviceScore'];
export type DeviceStay = components['schemas']['DeviceStay'];
export type DeviceTimeline = components['schemas']['DeviceTimeline'];
export type DeviceUse = components['schemas']['DeviceUse'];
export type DeviceView = components['schemas']['DeviceView'];
export type Difference = components['schemas']['Difference'];
export type DocumentDiff = components['schemas']['DocumentDiff'];
export type DocumentSummary = components['schemas']['DocumentSummary'];
export type DocumentView = components['schemas']['DocumentView'];
export type DrainBody = components['schemas']['DrainBody'];
export type EditView = components['schemas']['EditView'];
export type EditedField = components['schemas']['EditedField'];
export type EfficiencyReport = components['schemas']['EfficiencyReport'];
export type EfficiencySum = components['schemas']['EfficiencySum'];
export type Entity = components['schemas']['Entity'];
export type ErrorShape = components['schemas']['ErrorShape'];
export type EstimateReport = components['schemas']['EstimateReport'];
export type EstimateView = components['schemas']['EstimateView'];
export type EventRecord = components['schemas']['EventRecord'];
export type ExitView = components['schemas']['ExitView'];
export type Explanation = components['schemas']['Explanation'];
export type ExtendBody = components['schemas']['ExtendBody'];
export type FairnessReport = components['schemas']['FairnessReport'];
export type FairnessRow = components['schemas']['FairnessRow'];
export type Figures = components['schemas']['Figures'];
export type FilePreview = components['schemas']['FilePreview'];
export type FileView = components['schemas']['FileView'];
export type FolderDisk = components['schemas']['FolderDisk'];
export type ForecastView = components['schemas']['ForecastView'];
export type GoalOutcome = components['schemas']['GoalOutcome'];
export type GoalTry = components['schemas']['GoalTry'];
export type GrantWords = components['schemas']['GrantWords'];
export type GroupChangeWords = components['schemas']['GroupChangeWords'];
export type GroupView = components['schemas']['GroupView'];
export type GuaranteeFinding = components['schemas']['GuaranteeFinding'];
export type Hang = components['schemas']['Hang'];
export type HangList = components['schemas']['HangList'];
export type HealthBody = components['schemas']['HealthBody'];
export type HealthEntryView = components['schemas']['HealthEntryView'];
export type HealthEvent = components['schemas']['HealthEvent'];
export type HealthEvents = components['schemas']['HealthEvents'];
export type HealthEventsTaken = components['schemas']['HealthEventsTaken'];
export type HealthView = components['schemas']['HealthView'];
export type Holding = components['schemas']['Holding'];
export type HourRow = components['schemas']['HourRow'];
export type IdleJob = components['schemas']['IdleJob'];
export type IdleList = components['schemas']['IdleList'];
export type ImportGroup = components['schemas']['ImportGroup'];
export type ImportJob = components['schemas']['ImportJob'];
export type ImportToken = components['schemas']['ImportToken'];
export type ImportUser = components['schemas']['ImportUser'];
export type Imported = components['schemas']['Imported'];
export type ImportedPage = components['schemas']['ImportedPage'];
export type JobAntiAffinity = components['schemas']['JobAntiAffinity'];
export type JobArray = components['schemas']['JobArray'];
export type JobBarrier = components['schemas']['JobBarrier'];
export type JobCache = components['schemas']['JobCache'];
export type JobCheckpoint = components['schemas']['JobCheckpoint'];
export type JobCode = components['schemas']['JobCode'];
export type JobCompileCache = components['schemas']['JobCompileCache'];
export type JobCompletion = components['schemas']['JobCompletion'];
export type JobDependency = components['schemas']['JobDependency'];
export type JobDetail = components['schemas']['JobDetail'];
export type JobDevices = components['schemas']['JobDevices'];
export type JobDocument = components['schemas']['JobDocument'];
export type JobEdit = components['schemas']['JobEdit'];
export type JobEfficiency = components['schemas']['JobEfficiency'];
export type JobExpression = components['schemas']['JobExpression'];
export type JobFairness = components['schemas']['JobFairness'];
export type JobFile = components['schemas']['JobFile'];
export type JobInput = components['schemas']['JobInput'];
export type JobKubernetes = components['schemas']['JobKubernetes'];
export type JobMeasuredSize = components['schemas']['JobMeasuredSize'];
export type JobMetadata = components['schemas']['JobMetadata'];
export type JobNetwork = components['schemas']['JobNetwork'];
export type JobNodeRules = components['schemas']['JobNodeRules'];
export type JobNotifications = components['schemas']['JobNotifications'];
export type JobOutcome = components['schemas']['JobOutcome'];
export type JobOutput = components['schemas']['JobOutput'];
export type JobPort = components['schemas']['JobPort'];
export type JobPreflight = components['schemas']['JobPreflight'];
export type JobReplicaSpec = components['schemas']['JobReplicaSpec'];
export type JobReport = components['schemas']['JobReport'];
export type JobResources = components['schemas']['JobResources'];
export type JobRetryPolicy = components['schemas']['JobRetryPolicy'];
export type JobRole = components['schemas']['JobRole'];
export type JobSecret = components['schemas']['JobSecret'];
export type JobShare = components['schemas']['JobShare'];
export type JobSharing = components['schemas']['JobSharing'];
export type JobSpec = components['schemas']['JobSpec'];
export type JobStatus = components['schemas']['JobStatus'];
export type JobStorageUse = components['schemas']['JobStorageUse'];
export type JobSummary = components['schemas']['JobSummary'];
export type JobToleration = components['schemas']['JobToleration'];
export type JobTopology = components['schemas']['JobTopology'];
export type JobTopologyGroup = components['schemas']['JobTopologyGroup'];
export type JobTopologySpread = components['schemas']['JobTopologySpread'];
export type LedgerLine = components['schemas']['LedgerLine'];
export type LedgerView = components['schemas']['LedgerView'];
export type LineEntry = components['schemas']['LineEntry'];
export type Login = components['schemas']['Login'];
export type LoginLink = components['schemas']['LoginLink'];
export type MachineDisk = components['schemas']['MachineDisk'];
export type MachineFacts = components['schemas']['MachineFacts'];
export type MachineMemory = components['schemas']['MachineMemory'];
export type MachineReport = components['schemas']['MachineReport'];
export type Me = components['schemas']['Me'];
export type MemoryHolder = components['schemas']['MemoryHolder'];
export type MismatchView = components['schemas']['MismatchView'];
export type Moved = components['schemas']['Moved'];
export type NetworkLevel = components['schemas']['NetworkLevel'];
export type NetworkReport = components['schemas']['NetworkReport'];
export type NetworkWay = components['schemas']['NetworkWay'];
export type NewChannel = components['schemas']['NewChannel'];
export type NewChannelView = components['schemas']['NewChannelView'];
export type NewGroup = components['schemas']['NewGroup'];
export type NewToken = components['schemas']['NewToken'];
export type NewUser = components['schemas']['NewUser'];
export type NodeJob = components['schemas']['NodeJob'];
export type NodeView = components['schemas']['NodeView'];
export type NotificationView = components['schemas']['NotificationView'];
export type NumaNode = components['schemas']['NumaNode'];
export type OfferBody = components['schemas']['OfferBody'];
export type OidcView = components['schemas']['OidcView'];
export type OpenPaiImport = components['schemas']['OpenPaiImport'];
export type OpenedService = components['schemas']['OpenedService'];
export type OtherApplication = components['schemas']['OtherApplication'];
export type OutputView = components['schemas']['OutputView'];
export type Overrides = components['schemas']['Overrides'];
export type PageAttemptRecord = components['schemas']['Page_AttemptRecord_'];
export type PageAuditRecord = components['schemas']['Page_AuditRecord_'];
export type PageChannelView = components['schemas']['Page_ChannelView_'];
export type PageClusterUse = components['schemas']['Page_ClusterUse_'];
export type PageDeviceView = components['schemas']['Page_DeviceView_'];
export type PageDocumentSummary = components['schemas']['Page_DocumentSummary_'];
export type PageEventRecord = components['schemas']['Page_EventRecord_'];
export type PageFileView = components['schemas']['Page_FileView_'];
export type PageGroupView = components['schemas']['Page_GroupView_'];
export type PageHealthEntryView = components['schemas']['Page_HealthEntryView_'];
export type PageHealthView = components['schemas']['Page_HealthView_'];
export type PageJobSummary = components['schemas']['Page_JobSummary_'];
export type PageNodeView = components['schemas']['Page_NodeView_'];
export type PageNotificationView = components['schemas']['Page_NotificationView_'];
export type PageOutputView = components['schemas']['Page_OutputView_'];
export type PagePastAlertView = components['schemas']['Page_PastAlertView_'];
export type PagePlacementRecord = components['schemas']['Page_PlacementRecord_'];
export type PageQueueView = components['schemas']['Page_QueueView_'];
export type PageReceiptView = components['schemas']['Page_ReceiptView_'];
export type PageSavedFilter = components['schemas']['Page_SavedFilter_'];
export type PageSecretView = components['schemas']['Page_SecretView_'];
export type PageServerPart = components['schemas']['Page_ServerPart_'];
export type PageStorageView = components['schemas']['Page_StorageView_'];
export type PageTaskRecord = components['schemas']['Page_TaskRecord_'];
export type PageTokenView = components['schemas']['Page_TokenView_'];
export type PageUserView = components['schemas']['Page_UserView_'];
export type PastAlertView = components['schemas']['PastAlertView'];
export type PciLink = components['schemas']['PciLink'];
export type PeersView = components['schemas']['PeersView'];
export type Place = components['schemas']['Place'];
export type PlacementRecord = components['schemas']['PlacementRecord'];
export type PlatformReport = components['schemas']['PlatformReport'];
export type PortsView = components['schemas']['PortsView'];
export type PreflightReport = components['schemas']['PreflightReport'];
export type ProblemView = components['schemas']['ProblemView'];
export type ProfileAdvice = components['schemas']['ProfileAdvice'];
export type ProfileComparison = components['schemas']['ProfileComparison'];
export type ProfileCurve = components['schemas']['ProfileCurve'];
export type ProfileDifference = components['schemas']['ProfileDifference'];
export type ProfileFile = components['schemas']['ProfileFile'];
export type ProfileFrame = components['schemas']['ProfileFrame'];
export type ProfileFunction = components['schemas']['ProfileFunction'];
export type ProfileList = components['schemas']['ProfileList'];
export type ProfilePathPart = components['schemas']['ProfilePathPart'];
export type ProfilePlace = components['schemas']['ProfilePlace'];
export type ProfileProblem = components['schemas']['ProfileProblem'];
export type ProfileReport = components['schemas']['ProfileReport'];
export type ProfileTop = components['schemas']['ProfileTop'];
export type ProfileView = components['schemas']['ProfileView'];
export type ProgressBody = components['schemas']['ProgressBody'];
export type PublicKey = components['schemas']['PublicKey'];
export type QueueEstimates = components['schemas']['QueueEstimates'];
export type QueueFigures = components['schemas']['QueueFigures'];
export type QueueHistory = components['schemas']['QueueHistory'];
export type QueueHistoryWeek = components['schemas']['QueueHistoryWeek'];
export type QueueLimits = components['schemas']['QueueLimits'];
export type QueueOutcome = components['schemas']['QueueOutcome'];
export type QueueRow = components['schemas']['QueueRow'];
export type QueueStanding = components['schemas']['QueueStanding'];
export type QueueView = components['schemas']['QueueView'];
export type RankCurves = components['schemas']['RankCurves'];
export type RankMemory = components['schemas']['RankMemory'];
export type RankScore = components['schemas']['RankScore'];
export type RankScores = components['schemas']['RankScores'];
export type RankTimeline = components['schemas']['RankTimeline'];
export type RankTimes = components['schemas']['RankTimes'];
export type Readiness = components['schemas']['Readiness'];
export type ReasonView = components['schemas']['ReasonView'];
export type ReasonsView = components['schemas']['ReasonsView'];
export type ReceiptView = components['schemas']['ReceiptView'];
export type ResumeBody = components['schemas']['ResumeBody'];
export type RoleEfficiency = components['schemas']['RoleEfficiency'];
export type RoleView = components['schemas']['RoleView'];
export type RollbackRequest = components['schemas']['RollbackRequest'];
export type RunningShadow = components['schemas']['RunningShadow'];
export type RunningShadowRequest = components['schemas']['RunningShadowRequest'];
export type SavedFilter = components['schemas']['SavedFilter'];
export type ScalarBody = components['schemas']['ScalarBody'];
export type ScalarsBody = components['schemas']['ScalarsBody'];
export type Scale = components['schemas']['Scale'];
export type SecretValue = components['schemas']['SecretValue'];
export type SecretView = components['schemas']['SecretView'];
export type SeriesAnswer = components['schemas']['SeriesAnswer'];
export type SeriesView = components['schemas']['SeriesView'];
export type ServerPart = components['schemas']['ServerPart'];
export type ServiceView = components['schemas']['ServiceView'];
export type ServicesView = components['schemas']['ServicesView'];
export type ShadowComparisons = components['schemas']['ShadowComparisons'];
export type ShadowReport = components['schemas']['ShadowReport'];
export type ShadowRequest = components['schemas']['ShadowRequest'];
export type ShadowStatus = components['schemas']['ShadowStatus'];
export type ShareView = components['schemas']['ShareView'];
export type SharedQueue = components['schemas']['SharedQueue'];
export type SharedTemplate = components['schemas']['SharedTemplate'];
export type SignedIn = components['schemas']['SignedIn'];
export type SilenceBody = components['schemas']['SilenceBody'];
export type SilenceList = components['schemas']['SilenceList'];
export type SilenceView = components['schemas']['SilenceView'];
export type Spread = components['schemas']['Spread'];
export type SshAccessView = components['schemas']['SshAccessView'];
export type Stay = components['schemas']['Stay'];
export type StorageView = components['schemas']['StorageView'];
export type TagChange = components['schemas']['TagChange'];
export type TakeBody = components['schemas']['TakeBody'];
export type Taken = components['schemas']['Taken'];
export type TaskAmounts = components['schemas']['TaskAmounts'];
export type TaskCounts = components['schemas']['TaskCounts'];
export type TaskRecord = components['schemas']['TaskRecord'];
export type TemplateDetail = components['schemas']['TemplateDetail'];
export type TemplateItem = components['schemas']['TemplateItem'];
export type TemplatePage = components['schemas']['TemplatePage'];
export type TemplateView = components['schemas']['TemplateView'];
export type TensorBoardBody = components['schemas']['TensorBoardBody'];
export type Timeline = components['schemas']['Timeline'];
export type TimelineNode = components['schemas']['TimelineNode'];
export type TokenRequest = components['schemas']['TokenRequest'];
export type TokenView = components['schemas']['TokenView'];
export type ToldAlert = components['schemas']['ToldAlert'];
export type Top = components['schemas']['Top'];
export type TopUpBody = components['schemas']['TopUpBody'];
export type TopUpView = components['schemas']['TopUpView'];
export type Trial = components['schemas']['Trial'];
export type UploadProgress = components['schemas']['UploadProgress'];
export type Uploaded = components['schemas']['Uploaded'];
export type UsageReport = components['schemas']['UsageReport'];
export type UsageRow = components['schemas']['UsageRow'];
export type UseOverTime = components['schemas']['UseOverTime'];
export type UserChange = components['schemas']['UserChange'];
export type UserChanged = components['schemas']['UserChanged'];
export type UserFairness = components['schemas']['UserFairness'];
export type UserView = components['schemas']['UserView'];
export type Validation = components['schemas']['Validation'];
export type VersionView = components['schemas']['VersionView'];
export type WaitingLine = components['schemas']['WaitingLine'];
export type WaitingView = components['schemas']['WaitingView'];
export type WebhookCall = components['schemas']['WebhookCall'];
export type WhatIfAnswer = components['schemas']['WhatIfAnswer'];
export type WhatIfProgress = components['schemas']['WhatIfProgress'];
export type WhatIfQuestions = components['schemas']['WhatIfQuestions'];
export type WhatIfRefusal = components['schemas']['WhatIfRefusal'];
export type WhatIfRequest = components['schemas']['WhatIfRequest'];
export type WhatIfStatus = components['schemas']['WhatIfStatus'];
export type WhenUsedUp = components['schemas']['WhenUsedUp'];
export type WorkView = components['schemas']['WorkView'];
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
