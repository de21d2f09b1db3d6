/** Complete runs for tests. A test sets only the fields that it is about. */
import type { RunState } from '../../src/protocol/run-state.js'
import type { Store } from '../../src/service/store/index.js'
import type { ClaimedRun, ClaimRequest, HeldRun, NewRun, StoredOutput } from '../../src/service/store/run.js'

/** A free create of account 1, without a key. */
export const newRun = (run: Partial<NewRun> = {}): NewRun => ({
  id: 'run_1',
  accountId: 1,
  keyId: undefined,
  model: 'rushes/preview-image',
  kind: 'image',
  input: { prompt: 'a fox' },
  price: 0,
  createdAtMs: 1,
  ...run,
})

/** The models of the runs that tests make. */
const MODELS = ['rushes/preview-image', 'rushes/preview-video', 'm', 'acme/small', 'acme/large']

/** By run: the number of its last claim. */
const attempts = new Map<string, number>()

/** Claims a run for a worker that renders all models of the tests, unless the request names others. */
export async function claimRun(
  store: Pick<Store, 'claimRun'>,
  worker: string,
  request: Partial<ClaimRequest> = {},
): Promise<HeldRun | undefined> {
  const run = await store.claimRun({ worker, nowMs: 5, models: MODELS, ...request })
  if (run !== undefined) attempts.set(run.id, run.attempt)
  return run
}

/** A run by its last claim. */
export const held = (id: string, owner = 'me', nowMs = 9): ClaimedRun => ({
  id,
  owner,
  nowMs,
  attempt: attempts.get(id) ?? 1,
})

/** An output, as a worker records it. */
export const storedOutput = (output: Partial<StoredOutput> = {}): StoredOutput => ({
  token: 't',
  name: 'a.png',
  contentType: 'image/png',
  bytes: 3,
  sha256: 'abc',
  ...output,
})

/** A run claimed by a worker. */
export const storedRun = (run: Partial<HeldRun> = {}): HeldRun => ({
  attempt: 1,
  id: 'run_1',
  accountId: 1,
  model: 'rushes/preview-image',
  kind: 'image',
  status: 'processing',
  input: { prompt: 'a fox' },
  outputs: [],
  failure: undefined,
  createdAtMs: 0,
  startedAtMs: 0,
  finishedAtMs: undefined,
  ...run,
})

/** State of a run that is being rendered, as a status request returns it. */
export const runState = (state: Partial<RunState> = {}): RunState => ({
  id: 'run_1',
  status: 'processing',
  phase: 'running',
  urls: [],
  failure: undefined,
  createdAt: undefined,
  finishedAt: undefined,
  service: {},
  ...state,
})
