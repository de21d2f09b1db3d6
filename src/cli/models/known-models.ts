/**
 * The documents of the models that a command can use: the files of `rushes models add` in the config folder, then the list
 * that the service sent, one file per address in the state folder; with `--local`, only the models of the local service.
 * A model without a document has the built-in schema of its kind.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { rm, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ModelsOutcome } from '../../client/index.js'
import { EXIT, RushesError } from '../../errors.js'
import { withTimeout } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { makeFolders } from '../../host/file-system.js'
import { writeAtomically } from '../../host/files.js'
import { asRushesError } from '../../host/interrupts.js'
import { errorCode } from '../../host/system-error.js'
import { readJson, writeJson } from '../../protocol/json.js'
import { documentJson, readModelDocument } from '../../protocol/model-document.js'
import { builtInSchema, type Kind, type ModelDocument } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { mayCost } from '../../protocol/price.js'
import { shortened } from '../../protocol/text.js'
import { addedModelPath, addedModelsFolder, keptListPath } from '../settings/folders.js'
import { plural } from '../terminal/format.js'

export interface KnownModel {
  readonly document: ModelDocument
  /** Where the document comes from. */
  readonly source: 'added' | 'service' | 'local'
}

export interface KnownModelsOptions {
  readonly configFolder: string
  readonly stateFolder: string
  /** URL of the service. Undefined if none is set. */
  readonly address: string | undefined
  /** With `--local`, the documents of the local service. No others are then used. */
  readonly local?: readonly ModelDocument[] | undefined
  /** Undefined if the service must not be asked. */
  readonly ask?: AskService | undefined
}

export interface AskService {
  readonly clock: Clock
  readonly signal: AbortSignal
  warn(message: string): void
  /** Sends one request, which counts in the rate limit. */
  models(signal: AbortSignal): Promise<ModelsOutcome>
}

/** A command does not wait longer for the list, because it works without it. */
const TIMEOUT_MS = 2_000
/** An answer to this process counts for so long. */
const CURRENT_MS = 60_000

export class KnownModels {
  readonly #options: KnownModelsOptions
  /** Null if there is none on the disk. */
  #kept: KeptList | null | undefined
  #asked: { readonly atMs: number; readonly outcome: Promise<ModelsOutcome> } | undefined
  /** A thousand rows may have the same model, and reading its document takes a file. */
  readonly #found = new Map<string, FoundDocument>()
  readonly #warned = new Set<string>()

  constructor(options: KnownModelsOptions) {
    this.#options = options
  }

  /** Returns the document of a model. Undefined if it has none, or an invalid one. */
  find(name: string): ModelDocument | undefined {
    const found = this.#find(name)
    return found === 'invalid' ? undefined : found
  }

  /** Whether the model has a document that is not valid. Its input is then not checked. */
  isInvalid(name: string): boolean {
    return this.#find(name) === 'invalid'
  }

  #find(name: string): FoundDocument {
    const { local, configFolder } = this.#options
    if (local !== undefined) return local.find((document) => document.name === name)
    if (!this.#found.has(name)) {
      const added = findAdded(configFolder, name)
      if (added === 'invalid') this.#warnDamaged(`The added model file of ${name}`)
      this.#found.set(name, added ?? findKept(this.#list?.models ?? {}, name))
    }
    return this.#found.get(name)
  }

  #warnDamaged(what: string): void {
    if (this.#warned.has(what)) return
    this.#warned.add(what)
    this.#options.ask?.warn(`${what} is damaged, so its parameters are not checked. Add the model again.`)
  }

  list(): readonly KnownModel[] {
    const { configFolder, local } = this.#options
    if (local !== undefined) return local.map((document) => ({ document, source: 'local' }))
    const known = new Map<string, KnownModel>()
    for (const [path, document] of listAdded(configFolder))
      if (document === 'invalid') this.#warnDamaged(path)
      else if (document !== undefined) known.set(document.name, { document, source: 'added' })
    for (const name of Object.keys(this.#list?.models ?? {})) {
      const document = known.has(name) ? undefined : this.find(name)
      if (document !== undefined) known.set(name, { document, source: 'service' })
    }
    return [...known.values()]
  }

  /** When the service sent its list, in milliseconds since the epoch. Undefined if it has none, or was never asked. */
  get listedAtMs(): number | undefined {
    return this.#options.local === undefined ? this.#list?.askedAtMs : undefined
  }

  get #list(): KeptList | undefined {
    const { stateFolder, address } = this.#options
    if (this.#kept === undefined && address !== undefined) this.#kept = readKept(stateFolder, address) ?? null
    return this.#kept ?? undefined
  }

  /** With `--local`, the default model of a kind: the one that says so, else the first that costs nothing. */
  defaultOf(kind: Kind): ModelDocument | undefined {
    const ofKind = this.#options.local?.filter((document) => document.kind === kind) ?? []
    return ofKind.find((document) => document.default) ?? ofKind.find((document) => !mayCost(document))
  }

  /**
   * Asks the service for its list, for at most 2 s and not again within a minute. Without an answer, the kept documents
   * count. Rejects only with the reason of the command's signal.
   */
  async ask(): Promise<ModelsOutcome> {
    const { ask, local } = this.#options
    if (ask === undefined || local !== undefined) return { kind: 'none', reason: 'it is not asked' }
    const atMs = ask.clock.monotonic()
    if (this.#asked === undefined || atMs - this.#asked.atMs >= CURRENT_MS)
      this.#asked = { atMs, outcome: this.#askService(ask) }
    return this.#asked.outcome
  }

  /**
   * Returns the result of `check`. Before it says no (throws `usage`), asks the service for its list, and checks again if
   * there is one.
   */
  async checked<Result>(check: () => Result | Promise<Result>): Promise<Result> {
    try {
      return await check()
    } catch (error) {
      const isNo = error instanceof RushesError && error.exitCode === EXIT.usage
      if (!isNo || (await this.ask()).kind !== 'list') throw error
      return check()
    }
  }

  async #askService({ models, clock, signal, warn }: AskService): Promise<ModelsOutcome> {
    const { stateFolder, address } = this.#options
    const reason = () => new RushesError('network', 'The service did not send its list of models in time.')
    let outcome: ModelsOutcome
    try {
      outcome = await withTimeout(models, { timeoutMs: TIMEOUT_MS, reason, clock, signal })
    } catch (error) {
      signal.throwIfAborted()
      // A missing key, for example, is reported by the request that needs it.
      outcome = { kind: 'failed', error: asRushesError(error) }
    }
    if (outcome.kind === 'failed' && this.listedAtMs !== undefined)
      warn(
        'The service did not send its list of models and prices. ' +
          `This one is from ${new Date(this.listedAtMs).toISOString().slice(0, 10)}.`,
      )
    if (address === undefined || outcome.kind === 'failed') return outcome
    this.#found.clear()
    if (outcome.kind === 'none') {
      this.#kept = null
      await dropKept(stateFolder, address)
      return outcome
    }
    const { warning, models: listed } = checkList(outcome.models)
    if (warning !== undefined) warn(warning)
    this.#kept = { address, askedAtMs: clock.now(), models: listed }
    await writeKept(stateFolder, this.#kept)
    return outcome
  }
}

/** The built-in document of a kind, for a model without another document. `name`: empty if no model is set. */
export const builtInDocument = (kind: Kind, name = ''): ModelDocument => ({
  name,
  kind,
  input: builtInSchema(kind),
})

/** Undefined: there is none. */
type FoundDocument = ModelDocument | 'invalid' | undefined

/** Finds the document that was added for a model. */
function findAdded(configFolder: string, model: string): FoundDocument {
  const document = readAdded(addedModelPath(configFolder, model))
  return document === 'invalid' || document?.name === model ? document : undefined
}

/** Lists all added documents by their paths. */
function listAdded(configFolder: string): ReadonlyMap<string, FoundDocument> {
  const folder = addedModelsFolder(configFolder)
  let names: readonly string[] = []
  try {
    names = readdirSync(folder).filter((name) => name.endsWith('.json') && !name.startsWith('.'))
  } catch {
    // No model was added.
  }
  return new Map(names.toSorted().map((name) => [join(folder, name), readAdded(join(folder, name))]))
}

function readAdded(path: string): FoundDocument {
  try {
    return readModelDocument(readJson(readFileSync(path, 'utf8')), () => {}) ?? 'invalid'
  } catch (error) {
    return ['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '') ? undefined : 'invalid'
  }
}

/** Stores a document. Throws the system's errors. */
export async function addModel(configFolder: string, document: ModelDocument): Promise<void> {
  const path = addedModelPath(configFolder, document.name)
  makeFolders(dirname(path), 0o700)
  await writeAtomically(path, `${writeJson(documentJson(document), { indent: 2 })}\n`, { mode: 0o600 })
}

/** Removes the file of a model, also if it is not valid. Throws the system's errors. */
export const removeModel = (configFolder: string, model: string): Promise<void> =>
  unlink(addedModelPath(configFolder, model))

interface KeptList {
  readonly address: string
  /** When the service sent it, in milliseconds since the epoch. */
  readonly askedAtMs: number
  /** The documents by name, as JSON: a command reads one of them. Null: not valid. */
  readonly models: Readonly<Record<string, string | null>>
}

/** Undefined if there is none, or if it is damaged. */
function readKept(stateFolder: string, address: string): KeptList | undefined {
  try {
    const kept = JSON.parse(readFileSync(keptListPath(stateFolder, address), 'utf8'))
    const isKept = kept.address === address && typeof kept.askedAtMs === 'number' && isObject(kept.models)
    return isKept ? kept : undefined
  } catch {
    return undefined
  }
}

/** Without a writable state folder, the next command has no list. */
async function writeKept(stateFolder: string, kept: KeptList): Promise<void> {
  const path = keptListPath(stateFolder, kept.address)
  try {
    makeFolders(dirname(path), 0o700)
    await writeAtomically(path, JSON.stringify(kept), { isFlushed: false, mode: 0o600 })
  } catch {
    // It is asked for again.
  }
}

/** The service has no list. */
const dropKept = (stateFolder: string, address: string): Promise<void> =>
  rm(keptListPath(stateFolder, address), { force: true }).catch(() => {})

export function findKept(models: KeptList['models'], name: string): FoundDocument {
  const text = Object.hasOwn(models, name) ? models[name] : undefined
  if (typeof text !== 'string') return text === null ? 'invalid' : undefined
  try {
    return readModelDocument(readJson(text), () => {})
  } catch {
    return undefined
  }
}

/**
 * Checks the documents of a service. One that is not valid does not affect the others; `warning`: one sentence about all of
 * them.
 */
export function checkList(entries: readonly unknown[]) {
  const models: Record<string, string | null> = {}
  const invalid: string[] = []
  for (const [index, entry] of entries.entries()) {
    const problems: string[] = []
    const document = readModelDocument(entry, (path, message) =>
      problems.push(`${path.join('.')} ${message}`),
    )
    if (document !== undefined) models[document.name] ??= writeJson(documentJson(document))
    else {
      const name = isObject(entry) && typeof entry.name === 'string' ? entry.name : `number ${index + 1}`
      models[name] ??= null
      invalid.push(shortened(`${name} (${problems[0]?.trim()})`, 200))
    }
  }
  const warning =
    `The service's list has ${plural(invalid.length, 'invalid model')}: ${shortened(invalid.join('; '), 500)}. ` +
    'Use these models with --input; their parameters are not checked.'
  return { models, warning: invalid.length === 0 ? undefined : warning }
}
