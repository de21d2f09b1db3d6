/**
 * The documents of the models that a command can use: added files, then the list of the service; with `--local`, only
 * the models of the local service. A model without a document has the built-in schema of its kind.
 */
import type { ModelsOutcome } from '../../client/index.js'
import { RushesError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import type { Kind, ModelDocument } from '../../protocol/models.js'
import { builtInSchema } from '../../protocol/parameters.js'
import type { Globals } from '../flags/globals.js'
import type { Env } from '../process/io.js'
import { addedModelPath, foldersOf } from '../settings/folders.js'
import { createQuickSettings } from '../settings/quick-settings.js'
import { LOCAL_ADDRESS } from '../settings/table.js'
import { findAdded, listAdded } from './added-models.js'
import {
  checkList,
  documentsInLines,
  findInLines,
  type KeptList,
  NOT_ASKED,
  readKept,
  writeKept,
} from './kept-list.js'

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
  /** Models of the service, and files of added models, whose documents are not valid. */
  invalid(): readonly string[]
  /** Whether the model has a document that is not valid, and no other. */
  isInvalid(name: string): boolean
  /** Time of the service's list that has the document of the model, in milliseconds, if it is older than a day. */
  oldListOf(name: string): number | undefined
  /** Whether the last answer of the service was a list. */
  readonly hasList: boolean
  /** Whether the service has answered before. True with `--local` and without a service URL. */
  readonly isAsked: boolean
  /** With `--local`, the default model of a kind. */
  defaultOf(kind: Kind): ModelDocument | undefined
  /**
   * Asks the service for its list, before a create, if a model has no document, or one of a list older than a day. Does
   * not ask again for some minutes, or for a day without a list. Rejects only with the reason of the command's signal.
   */
  learn(names: readonly string[]): Promise<void>
  /** Asks the service for at most 5 s. Returns whether it has a list. Rejects like `learn`. */
  refreshInTime(): Promise<boolean>
  /** Asks the service in any case. Rejects if the command has no service URL or key, or was interrupted. */
  refresh(signal?: AbortSignal): Promise<ModelsOutcome>
}

export interface KnownModelsOptions {
  readonly configFolder: string
  readonly stateFolder: string
  /** URL of the service; undefined if none is set. */
  readonly address: string | undefined
  /** With `--local`, the documents of the local service. No others are then used. */
  readonly local?: readonly ModelDocument[] | undefined
  /** Undefined if the service must not be asked. */
  readonly ask?: AskService | undefined
}

export interface AskService {
  readonly clock: Pick<Clock, 'now' | 'alarm'>
  readonly signal: AbortSignal
  warn(message: string): void
  models(etag: string | undefined, signal: AbortSignal): Promise<ModelsOutcome>
}

const DAY_MS = 86_400_000
const MIN_AGE_MS = 300_000
/** A command does not wait longer for the list, because it works without it. */
const TIMEOUT_MS = 5_000

/** Whether to ask the service about a model that is not known. Ages are absolute, because the clock may go back. */
export function isDue({ askedAtMs, failedAtMs, hasList }: KeptList, nowMs: number): boolean {
  if (Math.abs(nowMs - failedAtMs) < MIN_AGE_MS) return false
  return Math.abs(nowMs - askedAtMs) >= (hasList ? MIN_AGE_MS : DAY_MS)
}

interface AnswerWithoutList {
  readonly kind: Exclude<ModelsOutcome['kind'], 'list'>
  /** The ETag that was sent. */
  readonly etag: string | undefined
}

/** What to keep after an answer without a list. Documents stay until they are a day old. */
export function afterAnswer(kept: KeptList, { kind, etag }: AnswerWithoutList, nowMs: number): KeptList {
  if (kind === 'unchanged') return kept.etag === etag ? { ...kept, askedAtMs: nowMs, failedAtMs: 0 } : kept
  const isRecent = kept.hasList && Math.abs(nowMs - kept.askedAtMs) < DAY_MS
  return kind === 'failed' || isRecent ? { ...kept, failedAtMs: nowMs } : { ...NOT_ASKED, askedAtMs: nowMs }
}

interface OpenModelsOptions {
  readonly env: Env
  readonly globals: Globals
  readonly ask?: AskService
}

/**
 * Opens the models that the flags and settings select. Throws `usage` if the documents of the local service cannot be
 * read.
 */
export async function openModels({ env, globals, ask }: OpenModelsOptions): Promise<KnownModels> {
  const { config: configFolder, state: stateFolder } = foldersOf(env)
  // Unlike `baseUrl` of the context, these settings report nothing: a command without a request needs no address.
  const settings = createQuickSettings(env, globals)
  const address = await settings.address()
  if (address !== LOCAL_ADDRESS) return createKnownModels({ configFolder, stateFolder, address, ask })
  const { localDocuments } = await import('./local-models.js')
  const path = await settings.setting('localModels')
  const local = await localDocuments({ path, configFolder, env })
  return createKnownModels({ configFolder, stateFolder, address: undefined, local })
}

export function createKnownModels(options: KnownModelsOptions): KnownModels {
  const { configFolder, stateFolder, address, local, ask } = options
  let read: KeptList | undefined
  let asking: Promise<unknown> | undefined
  const kept = (): KeptList => {
    read ??= (address === undefined ? undefined : readKept(stateFolder, address)) ?? NOT_ASKED
    return read
  }

  async function keep(next: KeptList): Promise<void> {
    read = next
    // Without a writable state folder, the next command asks again.
    if (address !== undefined) await writeKept(stateFolder, address, next).catch(() => {})
  }

  const warned = new Set<string>()
  function findOwn(name: string): ReturnType<typeof findAdded> {
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
    const added = findOwn(name) ?? findInLines(kept().lines, name)
    return added === 'invalid' ? undefined : added
  }

  async function refresh(signal?: AbortSignal): Promise<ModelsOutcome> {
    if (ask === undefined) return { kind: 'none', reason: 'it is not asked' }
    const before = kept()
    const etag = before.hasList ? before.etag : undefined
    const outcome = await ask.models(etag, signal ?? ask.signal)
    const nowMs = ask.clock.now()
    if (outcome.kind === 'list') {
      const { warning, ...checked } = checkList(outcome.models)
      if (warning !== undefined) ask.warn(warning)
      await keep({ ...NOT_ASKED, askedAtMs: nowMs, hasList: true, etag: outcome.etag, ...checked })
    } else {
      // Another command may have written its answer since.
      const current = (address && readKept(stateFolder, address)) || before
      await keep(afterAnswer(current, { kind: outcome.kind, etag }, nowMs))
    }
    return outcome
  }

  async function refreshInTime(): Promise<boolean> {
    if (ask === undefined) return false
    const { clock, signal } = ask
    const { withTimeout } = await import('../../host/abort.js')
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

  async function learn(names: readonly string[]): Promise<void> {
    if (local !== undefined || ask === undefined || address === undefined) return
    const nowMs = ask.clock.now()
    const isRecent = Math.abs(nowMs - kept().askedAtMs) < DAY_MS
    const isKnown = (name: string) =>
      findAdded(configFolder, name) !== undefined || (isRecent && find(name) !== undefined)
    if (names.every(isKnown) || !isDue(kept(), nowMs)) return
    asking ??= refreshInTime().finally(() => {
      asking = undefined
    })
    await asking
  }

  return {
    find,
    list() {
      const from = (source: ModelSource, documents: readonly ModelDocument[]) =>
        documents.map((document): KnownModel => ({ document, source }))
      if (local !== undefined) return from('local', local)
      const { documents: added, invalid } = listAdded(configFolder)
      const names = new Set(added.map(({ name }) => name))
      const isDamaged = (name: string) =>
        invalid.length > 0 && invalid.includes(addedModelPath(configFolder, name))
      const others = documentsInLines(kept().lines).filter(({ name }) => !names.has(name) && !isDamaged(name))
      return [...from('added', added), ...from('service', others)]
    },
    invalid: () => (local === undefined ? [...listAdded(configFolder).invalid, ...kept().invalid] : []),
    isInvalid(name) {
      if (local !== undefined) return false
      const added = findOwn(name)
      return added === undefined ? kept().invalid.includes(name) : added === 'invalid'
    },
    oldListOf(name) {
      const { askedAtMs, lines } = kept()
      const isOld = ask !== undefined && Math.abs(ask.clock.now() - askedAtMs) >= DAY_MS
      const isListed =
        isOld && findAdded(configFolder, name) === undefined && findInLines(lines, name) !== undefined
      return isListed ? askedAtMs : undefined
    },
    get hasList() {
      return local === undefined && kept().hasList
    },
    get isAsked() {
      return local !== undefined || address === undefined || kept().askedAtMs > 0
    },
    defaultOf(kind) {
      const ofKind = local?.filter((document) => document.kind === kind) ?? []
      return ofKind.find((document) => document.default) ?? ofKind[0]
    },
    learn,
    refreshInTime,
    refresh,
  }
}

/** The built-in document of a kind, for a model without another document. `name`: empty if no model is set. */
export const builtInDocument = (kind: Kind, name = ''): ModelDocument => ({
  name,
  kind,
  input: builtInSchema(kind),
})
