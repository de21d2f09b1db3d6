/**
 * The documents of the models that a command can use: added files, then the list of the service; with `--local`, only
 * the models of the local service. A model without a document has the built-in schema of its kind.
 */
import type { ModelsOutcome } from '../../client/index.js'
import { RushesError } from '../../errors.js'
import { withTimeout } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import type { Kind, ModelDocument } from '../../protocol/models.js'
import { builtInSchema } from '../../protocol/parameters.js'
import { mayCost } from '../../protocol/price.js'
import { addedModelPath, type ListOwner } from '../settings/folders.js'
import { findAdded, listAdded } from './added-models.js'
import { checkList, findKept, type KeptList, NOT_ASKED, readKept, writeKept } from './kept-list.js'

/** Where a document comes from. */
export type ModelSource = 'added' | 'service' | 'local'

export interface KnownModel {
  readonly document: ModelDocument
  readonly source: ModelSource
}

export interface KnownModels {
  /** Returns the document of a model; undefined if it has none, or an invalid one. */
  find(name: string): ModelDocument | undefined
  list(): readonly KnownModel[]
  /** Models of the service, and files of added models, whose documents are not valid, unless a warning named them. */
  invalid(): readonly string[]
  /** Whether the model has a document that is not valid, and no other. */
  isInvalid(name: string): boolean
  /**
   * Asks the service for its list if that has the documents of these models, also if the kept one is new. Returns its
   * time in milliseconds if it is older than a day now. Rejects like `refreshIfOld`.
   */
  renewListOf(names: readonly string[]): Promise<number | undefined>
  /** Whether the last answer of the service was a list. */
  readonly hasList: boolean
  /** Whether the service has answered before. True with `--local` and without a service URL. */
  readonly isAsked: boolean
  /** With `--local`, the default model of a kind: the one that says so, else the first that costs nothing. */
  defaultOf(kind: Kind): ModelDocument | undefined
  /**
   * Reads the kept list again. Then asks the service, if there is no list, or one older than a day. A command that needs
   * documents calls this once, before it reads its input, plans and counts. Resolves with whether the documents have
   * changed. Rejects only with the reason of the command's signal: without an answer, the kept documents count.
   */
  refreshIfOld(): Promise<boolean>
  /** Asks the service for at most 5 s. Returns whether it has a list. Rejects like `refreshIfOld`. */
  refreshInTime(): Promise<boolean>
  /** Asks the service in any case. Rejects if the command has no service URL or key, or was interrupted. */
  refresh(signal?: AbortSignal): Promise<ModelsOutcome>
}

export interface KnownModelsOptions {
  readonly configFolder: string
  readonly stateFolder: string
  /** URL of the service; undefined if none is set. */
  readonly address: string | undefined
  /** Undefined without a key for the service. */
  readonly account?: string | undefined
  /** With `--local`, the documents of the local service. No others are then used. */
  readonly local?: readonly ModelDocument[] | undefined
  /** Undefined if the service must not be asked. */
  readonly ask?: AskService | undefined
}

export interface AskService {
  readonly clock: Clock
  readonly signal: AbortSignal
  warn(message: string): void
  models(etag: string | undefined, signal: AbortSignal): Promise<ModelsOutcome>
}

const DAY_MS = 86_400_000
/** Prices that this process read so shortly before a create hold for it. */
const CURRENT_MS = 5_000
/** A command does not wait longer for the list, because it works without it. */
const TIMEOUT_MS = 5_000

/** Whether the last answer is older than a day. The age is absolute, because the clock may go back. */
export const isOld = (askedAtMs: number, nowMs: number): boolean => Math.abs(nowMs - askedAtMs) >= DAY_MS

interface AnswerWithoutList {
  readonly kind: Exclude<ModelsOutcome['kind'], 'list'>
  /** The ETag that was sent. */
  readonly etag: string | undefined
}

/** What to keep after an answer without a list. Documents stay until they are a day old. */
export function afterAnswer(kept: KeptList, { kind, etag }: AnswerWithoutList, nowMs: number): KeptList {
  if (kind === 'unchanged') return kept.etag === etag ? { ...kept, askedAtMs: nowMs } : kept
  const isRecent = kept.hasList && !isOld(kept.askedAtMs, nowMs)
  return kind === 'failed' || isRecent ? kept : { ...NOT_ASKED, askedAtMs: nowMs }
}

export function createKnownModels(options: KnownModelsOptions): KnownModels {
  const { configFolder, stateFolder, address, account, local, ask } = options
  const owner: ListOwner | undefined =
    address === undefined || account === undefined ? undefined : { address, account }
  let read: KeptList | undefined
  const onDisk = () => owner && readKept(stateFolder, owner)
  const kept = (): KeptList => {
    read ??= onDisk() ?? NOT_ASKED
    return read
  }

  async function keep(next: KeptList): Promise<void> {
    read = next
    // Without a writable state folder, the next command asks again.
    if (owner !== undefined) await writeKept(stateFolder, owner, next).catch(() => {})
  }

  let isListReported = false
  const warned = new Set<string>()
  function findOwn(name: string): ModelDocument | 'invalid' | undefined {
    const added = findAdded(configFolder, name)
    if (added === 'invalid' && !warned.has(name)) {
      warned.add(name)
      const path = addedModelPath(configFolder, name)
      ask?.warn(`${path} is damaged, so the parameters of ${name} are not checked. Add the model again.`)
    }
    return added
  }

  function find(name: string): ModelDocument | undefined {
    if (local !== undefined) return local.find((document) => document.name === name)
    const added = findOwn(name) ?? findKept(kept(), name)
    return added === 'invalid' ? undefined : added
  }

  /** Time of the last answer to this process. */
  let answeredAtMs = Number.NEGATIVE_INFINITY
  async function refresh(signal?: AbortSignal): Promise<ModelsOutcome> {
    if (ask === undefined) return { kind: 'none', reason: 'it is not asked' }
    const before = kept()
    const etag = before.hasList ? before.etag : undefined
    const outcome = await ask.models(etag, signal ?? ask.signal)
    const nowMs = ask.clock.now()
    if (outcome.kind !== 'failed') answeredAtMs = nowMs
    if (outcome.kind === 'list') {
      const { warning, ...checked } = checkList(outcome.models)
      if (warning !== undefined) ask.warn(warning)
      isListReported = true
      await keep({ askedAtMs: nowMs, hasList: true, etag: outcome.etag, ...checked })
    } else {
      // Another command may have written its answer since.
      const current = onDisk() ?? before
      const next = afterAnswer(current, { kind: outcome.kind, etag }, nowMs)
      read = current
      if (next !== current) await keep(next)
    }
    return outcome
  }

  async function refreshInTime(): Promise<boolean> {
    if (ask === undefined) return false
    const { clock, signal } = ask
    const reason = () => new RushesError('network', 'The service did not send its list of models in time.')
    try {
      const { kind } = await withTimeout(refresh, { timeoutMs: TIMEOUT_MS, reason, clock, signal })
      return kind === 'list' || kind === 'unchanged'
    } catch {
      // A missing key, for example, is reported by the request that needs it.
      signal.throwIfAborted()
      return false
    }
  }

  async function refreshIfOld(): Promise<boolean> {
    if (ask === undefined || owner === undefined) return false
    const before = kept()
    // Without a writable state folder, the list is only in memory.
    read = onDisk() ?? before
    if (isOld(read.askedAtMs, ask.clock.now())) await refreshInTime()
    return JSON.stringify(before.documents) !== JSON.stringify(kept().documents)
  }

  return {
    find,
    list: () => listOf(configFolder, local, kept),
    invalid: () =>
      local === undefined
        ? [...listAdded(configFolder).invalid, ...(isListReported ? [] : kept().invalid)]
        : [],
    isInvalid(name) {
      if (local !== undefined) return false
      const added = findOwn(name)
      return added === undefined ? kept().invalid.includes(name) : added === 'invalid'
    },
    async renewListOf(names) {
      const isListed = (name: string) =>
        findAdded(configFolder, name) === undefined && findKept(kept(), name) !== undefined
      if (ask === undefined || !names.some(isListed)) return undefined
      if (Math.abs(ask.clock.now() - answeredAtMs) >= CURRENT_MS) await refreshInTime()
      const { askedAtMs } = kept()
      return names.some(isListed) && isOld(askedAtMs, ask.clock.now()) ? askedAtMs : undefined
    },
    get hasList() {
      return local === undefined && kept().hasList
    },
    get isAsked() {
      return local !== undefined || address === undefined || kept().askedAtMs > 0
    },
    defaultOf(kind) {
      const ofKind = local?.filter((document) => document.kind === kind) ?? []
      return ofKind.find((document) => document.default) ?? ofKind.find((document) => !mayCost(document))
    },
    refreshIfOld,
    refreshInTime,
    refresh,
  }
}

function listOf(
  configFolder: string,
  local: KnownModelsOptions['local'],
  kept: () => KeptList,
): readonly KnownModel[] {
  const from = (source: ModelSource, documents: readonly ModelDocument[]) =>
    documents.map((document): KnownModel => ({ document, source }))
  if (local !== undefined) return from('local', local)
  const { documents: added, invalid } = listAdded(configFolder)
  const names = new Set(added.map(({ name }) => name))
  const isDamaged = (name: string) =>
    invalid.length > 0 && invalid.includes(addedModelPath(configFolder, name))
  const others = Object.keys(kept().documents)
    .filter((name) => !names.has(name) && !isDamaged(name))
    .flatMap((name) => findKept(kept(), name) ?? [])
  return [...from('added', added), ...from('service', others)]
}

/** The built-in document of a kind, for a model without another document. `name`: empty if no model is set. */
export const builtInDocument = (kind: Kind, name = ''): ModelDocument => ({
  name,
  kind,
  input: builtInSchema(kind),
})
