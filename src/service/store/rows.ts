/** Converts database rows to the contract's values. */
import { createHash } from 'node:crypto'
import { MAX_ACTIVE_KEYS } from '../../protocol/credentials.js'
import { readJson } from '../../protocol/json.js'
import type { Kind, ModelInput } from '../../protocol/models.js'
import type { LocalStatus } from '../../protocol/run-state.js'
import type { StoredJob } from '../engines/engine.js'
import type { AccountState, KeyRecord } from '../rules/key-checks.js'
import { Refusal } from '../rules/refusal.js'
import { dayOf } from '../rules/times.js'
import type {
  AccountRecord,
  KeyDetails,
  KeyTerms,
  LedgerEntry,
  LedgerEntryKind,
  Verification,
} from './account-store.js'
import type {
  DaySpend,
  KeyName,
  ListedEntry,
  ListedRun,
  SessionRecord,
  UserDetails,
  UserRecord,
} from './console-store.js'
import type { ModelOfRun, NewRun } from './contract.js'
import type { HeldRun, RunFailure, StoredOutput, StoredRun } from './run.js'
import type { Row, SqlValue } from './sql.js'

const textOr = (value: unknown): string | undefined => (value === null ? undefined : String(value))

/** Reads a boolean. SQLite has no booleans and stores 0 or 1. */
export const isSet = (value: unknown): boolean => Boolean(value)

const numberOr = (value: unknown): number | undefined => (value === null ? undefined : Number(value))

/** Reads a list, which is stored as JSON. */
const listOr = (value: unknown): readonly string[] | undefined =>
  value === null ? undefined : (JSON.parse(String(value)) as readonly string[])

const limitsOf = (row: Row) => ({
  disabled: isSet(row.disabled),
  expiresAtMs: numberOr(row.expires_at),
  allowedIps: listOr(row.allowed_ips),
  rate: rateOf(row),
})
const rateOf = ({ rate_requests: requests, rate_window_ms: windowMs }: Row) =>
  requests === null ? undefined : { requests: Number(requests), windowMs: Number(windowMs) }

export const keyOfRow = (row: Row): KeyRecord => ({
  ...limitsOf(row),
  id: Number(row.id),
  accountId: Number(row.account_id),
  banned: isSet(row.banned),
})

/** The last use is accurate to the minute, so what is stored can be before the creation. */
const usedAtMsOf = (row: Row): number | undefined => {
  const usedAtMs = numberOr(row.last_used_at)
  return usedAtMs && Math.max(usedAtMs, Number(row.created_at))
}

export const keyDetailsOfRow = (row: Row): KeyDetails => ({
  ...limitsOf(row),
  id: Number(row.id),
  account: String(row.account),
  name: String(row.name),
  prefix: textOr(row.prefix),
  spendLimit: numberOr(row.spend_limit),
  spent: Number(row.spent),
  quota: numberOr(row.quota),
  used: Number(row.used),
  createdAtMs: Number(row.created_at),
  usedAtMs: usedAtMsOf(row),
})

/** Throws `Refusal` if the account has `MAX_ACTIVE_KEYS` active keys. */
export function checkActiveKeys(row: Row | undefined): void {
  if (Number(row?.active) >= MAX_ACTIVE_KEYS) throw new Refusal('too_many_keys')
}

/** A key's terms in the order of the statement's parameters. */
export const termValues = ({
  disabled = false,
  expiresAtMs,
  spendLimit,
  quota,
  allowedIps,
  rate,
}: Partial<KeyTerms>): readonly SqlValue[] => [
  disabled,
  expiresAtMs ?? null,
  spendLimit ?? null,
  quota ?? null,
  allowedIps === undefined ? null : JSON.stringify(allowedIps),
  rate?.requests ?? null,
  rate?.windowMs ?? null,
]

export const accountSummaryOf = (row: Row) => ({
  name: String(row.name),
  balance: Number(row.balance),
  banned: isSet(row.banned),
})

export const accountOfRow = (row: Row): AccountRecord => ({
  ...accountSummaryOf(row),
  id: Number(row.id),
  keys: Number(row.keys),
  runs: Number(row.runs),
  createdAtMs: Number(row.created_at),
})

export const accountStateOfRow = (row: Row): AccountState => ({
  spent: Number(row.spent),
  spendLimit: numberOr(row.spend_limit),
  used: Number(row.used),
  quota: numberOr(row.quota),
  balance: Number(row.balance),
  disabled: isSet(row.disabled),
  expiresAtMs: numberOr(row.expires_at),
  banned: isSet(row.banned),
})

export const ledgerEntryOfRow = (row: Row): LedgerEntry => ({
  sequence: Number(row.sequence),
  account: String(row.account),
  kind: row.kind as LedgerEntryKind,
  amount: Number(row.amount),
  runId: textOr(row.run_id),
  keyId: numberOr(row.key_id),
  createdAtMs: Number(row.created_at),
})

/** Builds the result from the rows that each verification statement returned. */
export function verificationOf([totals = [], ...checks]: readonly (readonly Row[])[]): Verification {
  const [row] = totals
  return {
    accounts: Number(row?.accounts ?? 0),
    entries: Number(row?.entries ?? 0),
    runs: Number(row?.runs ?? 0),
    credits: Number(row?.credits ?? 0),
    problems: checks.flatMap((rows) => rows.map(({ problem }) => String(problem))),
  }
}

/** Parses the input. A corrupt input fails only its run, and not each claim that finds it. */
function withInput(run: Omit<StoredRun, 'input'>, text: unknown): StoredRun {
  try {
    return { ...run, input: readJson(String(text)) as ModelInput }
  } catch {
    return { ...run, input: {}, failure: run.failure ?? CORRUPT_INPUT }
  }
}

const CORRUPT_INPUT: RunFailure = {
  code: 'render_failed',
  message: 'The stored input of this run is damaged.',
}

export const outputOfRow = (row: Row): StoredOutput => ({
  token: String(row.token),
  name: String(row.name),
  contentType: String(row.content_type),
  bytes: Number(row.bytes),
  sha256: String(row.sha256),
})

const keyNameOf = ({ key_id, key_name }: Row): KeyName | undefined =>
  key_id === null ? undefined : { id: Number(key_id), name: String(key_name) }

export const listedRunOf = (row: Row, run: Omit<StoredRun, 'input'>): Omit<ListedRun, 'isRemoved'> => ({
  ...run,
  sequence: Number(row.sequence),
  prompt: textOr(row.prompt),
  aspectRatio: textOr(row.aspect_ratio),
  key: keyNameOf(row),
  price: Number(row.price),
  isRefunded: row.refund !== null,
  crashes: Number(row.crashes),
})

export const listedEntryOf = (row: Row): ListedEntry => ({ ...ledgerEntryOfRow(row), key: keyNameOf(row) })

/** `row.at`: the start of the day, in milliseconds. */
export const daySpendOf = (row: Row): DaySpend => ({
  day: dayOf(Number(row.at)),
  credits: Number(row.credits),
  runs: Number(row.runs),
})

export const userOfRow = (row: Row): UserRecord => ({
  id: Number(row.user_id),
  email: String(row.email),
  accountId: Number(row.account_id),
  account: String(row.account),
  banned: isSet(row.banned),
  password: textOr(row.password),
  createdAtMs: Number(row.user_created_at),
})

export const userDetailsOfRow = (row: Row): UserDetails => ({
  ...userOfRow(row),
  sessions: Number(row.sessions),
  lastSeenAtMs: numberOr(row.last_seen_at),
})

export const sessionOfRow = (row: Row): SessionRecord => ({
  id: Number(row.id),
  hash: String(row.hash),
  user: userOfRow(row),
  fromLink: isSet(row.from_link),
  address: textOr(row.address),
  userAgent: textOr(row.user_agent),
  createdAtMs: Number(row.created_at),
  usedAtMs: Number(row.used_at),
  expiresAtMs: Number(row.expires_at),
})

/** Maximum number of prompt characters in the column `prompt`. A search covers only these. */
const MAX_PROMPT_CHARACTERS = 1_000

/** Removes NUL and unpaired surrogates, which neither PostgreSQL nor the SQLite driver can store. */
const storable = (text: string): string => text.replace(/\0|\p{Surrogate}/gu, '')

/** Returns the first characters of the prompt. Null if the prompt is not a string. */
export const promptOf = ({ prompt }: ModelInput): string | null =>
  typeof prompt === 'string'
    ? [...storable(prompt.slice(0, 4 * MAX_PROMPT_CHARACTERS))].slice(0, MAX_PROMPT_CHARACTERS).join('')
    : null

/** Longer than any real aspect ratio. Needed because a model may accept any text. */
const MAX_RATIO_CHARACTERS = 100

export const aspectRatioOf = ({ aspect_ratio }: ModelInput): string | null =>
  typeof aspect_ratio === 'string' ? storable(aspect_ratio.slice(0, MAX_RATIO_CHARACTERS)) : null

/** Values of a `NewRun` by column name, without the input. */
export const newRunColumns = ({
  id,
  accountId,
  keyId,
  model,
  kind,
  input,
  price,
  carried,
  createdAtMs,
  idempotency,
}: NewRun) =>
  ({
    id,
    account_id: accountId,
    key_id: keyId ?? null,
    model,
    kind,
    prompt: promptOf(input),
    aspect_ratio: aspectRatioOf(input),
    price,
    created_at: createdAtMs,
    document: carried?.hash ?? null,
    idempotency_key: idempotency?.key ?? null,
    request: idempotency?.request ?? null,
  }) as const

/**
 * Columns of a `StoredRun`, except input, outputs and failure. Contains no other columns, because every status request
 * reads these.
 */
export const STORED_RUN_COLUMNS = `runs.id, runs.account_id, runs.model, runs.kind, runs.status, runs.created_at,
      runs.started_at, runs.finished_at, runs.stopping`

/** Columns of a `StoredRun`, except outputs. */
export const RUN_COLUMNS = `${STORED_RUN_COLUMNS}, failure, input`

/** The model that a run carries. */
export const DOCUMENT =
  '(SELECT documents.document FROM documents WHERE documents.hash = runs.document) AS document'

export const modelOfRow = (row: Row): ModelOfRun => ({
  id: String(row.id),
  model: String(row.model),
  document: textOr(row.document),
})

export const runOfRow = (row: Row, outputs: readonly Row[]): StoredRun =>
  withInput(runSummaryOf(row, outputs), row.input)

export const heldRunOf = (row: Row): HeldRun => ({
  ...runOfRow(row, []),
  document: textOr(row.document),
  job: jobOf(row.job),
  attempt: Number(row.attempt),
})

/** Whether a create of the run may have been accepted. */
export const hasJob = (value: unknown): boolean => typeof value === 'string' && value !== '{}'

/** Reads the job of a run. A damaged one may have been sent. */
export const jobOf = (value: unknown): StoredJob | undefined =>
  value === null ? undefined : parsedOr<StoredJob>(value, { intent: { id: '', sentAtMs: 0, endpoint: '' } })

/** Reads the failure of a run. The code of a damaged one is read as the SQL of the ledger reads it. */
export const failureOf = (value: unknown): RunFailure | undefined =>
  value === null
    ? undefined
    : parsedOr<RunFailure>(value, {
        code: /^\{"code":"([a-z_]+)",/.exec(String(value))?.[1] ?? 'render_failed',
        message: 'The stored error of this run is damaged.',
      })

function parsedOr<Value>(text: unknown, damaged: Value): Value {
  try {
    return JSON.parse(String(text)) as Value
  } catch {
    return damaged
  }
}

/** Finds the other runs with a job, or with a create at its endpoint that had no answer. Ids have any length. */
export const jobKeyOf = ({ handle, intent }: StoredJob): string | null =>
  handle === undefined && intent === undefined
    ? null
    : createHash('sha256')
        .update(handle === undefined ? `create ${intent?.endpoint}` : `job ${handle.id}`)
        .digest('base64url')

/** Converts a row, except its input. */
export const runSummaryOf = (row: Row, outputs: readonly Row[]): Omit<StoredRun, 'input'> => ({
  id: String(row.id),
  accountId: Number(row.account_id),
  model: String(row.model),
  kind: row.kind as Kind,
  // A cancel that is not decided can still come too late.
  status: isSet(row.stopping) ? 'processing' : (row.status as LocalStatus),
  outputs: outputs.map(outputOfRow),
  failure: failureOf(row.failure),
  createdAtMs: Number(row.created_at),
  startedAtMs: numberOr(row.started_at),
  finishedAtMs: isSet(row.stopping) ? undefined : numberOr(row.finished_at),
})
