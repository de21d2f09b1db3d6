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
import { foldersOf } from '../settings/folders.js'
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
  /** Whether the last answer of the service was a list. */
  readonly hasList: boolean
  /** Whether the service has answered before. True with `--local` and without a service URL. */
  readonly isAsked: boolean
  /** With `--local`, the default model of a kind. */
  defaultOf(kind: Kind): ModelDocument | undefined
  /**
   * Asks the service for its list if the kept one is older than a day, or if a name is not known and it did not ask in the
   * last minutes. Rejects only with the reason of the command's signal.
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

  const find = (name: string): ModelDocument | undefined =>
    local === undefined
      ? (findAdded(configFolder, name) ?? findInLines(kept().lines, name))
      : local.find((document) => document.name === name)

  async function refresh(signal?: AbortSignal): Promise<ModelsOutcome> {
    if (ask === undefined) return { kind: 'none', reason: 'it is not asked' }
    const before = kept()
    const outcome = await ask.models(before.hasList ? before.etag : undefined, signal ?? ask.signal)
    const askedAtMs = ask.clock.now()
    if (outcome.kind === 'failed') await keep({ ...before, failedAtMs: askedAtMs })
    else if (outcome.kind === 'unchanged') await keep({ ...before, askedAtMs, failedAtMs: 0 })
    else if (outcome.kind === 'none') await keep({ ...NOT_ASKED, askedAtMs })
    else {
      const { warning, ...checked } = checkList(outcome.models)
      if (warning !== undefined) ask.warn(warning)
      await keep({ ...NOT_ASKED, askedAtMs, hasList: true, etag: outcome.etag, ...checked })
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
    if ((isRecent && names.every((name) => find(name) !== undefined)) || !isDue(kept(), nowMs)) return
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
      const added = listAdded(configFolder).documents
      const names = new Set(added.map(({ name }) => name))
      const others = documentsInLines(kept().lines).filter(({ name }) => !names.has(name))
      return [...from('added', added), ...from('service', others)]
    },
    invalid: () => (local === undefined ? [...listAdded(configFolder).invalid, ...kept().invalid] : []),
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
