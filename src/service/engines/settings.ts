/**
 * What a type of engine (`engine: {type: images}` in a model's document) is: a function that reads its settings, with all
 * problems at their places, before the service listens. The result creates the engine.
 */
import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Clock } from '../../host/clock.js'
import type { HttpResponse, ServerRequest } from '../../host/http.js'
import { describeReason } from '../../host/system-error.js'
import type { DocumentPath, ReportProblem } from '../../protocol/model-document.js'
import type { Kind, ModelDocument, ParameterSchema } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { didYouMean, shortened } from '../../protocol/text.js'
import type { Engine } from './engine.js'

export type ReadEngine = (settings: EngineSettings, document: ModelDocument) => CreateEngine

export type CreateEngine = (parts: EngineParts) => Engine

/** What a node gives to all of its engines. */
export interface ServerParts {
  readonly clock: Clock
  /** Sends requests to the servers of models. It adds no key and follows no redirect. */
  fetch(request: ServerRequest): Promise<HttpResponse>
  /** Gets a line about a server that is waited for. */
  warn?(line: string): void
}

export interface EngineParts extends ServerParts {
  readonly env: Readonly<Record<string, string | undefined>>
  /** URLs of the service's database and storage, whose secrets no command gets. */
  readonly urls: readonly (string | undefined)[]
  /** Creates the built-in renderer, once for all models that use it. */
  preview(): Engine
}

export interface SettingsSource {
  readonly engine: Readonly<Record<string, unknown>>
  /** Reports at paths below `engine`. */
  readonly report: ReportProblem
  /** Parameters that the document itself names. */
  readonly named?: readonly string[]
  /** Parameters that each run must have. */
  readonly needed?: readonly string[]
  /** Whether the document has exactly the parameters that the engine has a place for, as that of a run. */
  readonly isComplete?: boolean
  /** Folder that the paths of files are relative to. */
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  /**
   * For `--local`, which uses one of several models: a variable with a key that is not set fails the runs of its model.
   * Default: it is a problem of the document.
   */
  readonly allowsMissingKeys?: boolean
}

/** Far more than the largest workflow. */
const MAX_FILE_MIB = 16
/** Returned for an address with a problem. Only documents without problems are rendered. */
const NO_URL = new URL('http://rushes.invalid')

/**
 * Every method reports a value of another type, and then returns undefined or an empty value. A key that no method was called
 * for is reported as unknown.
 */
export class EngineSettings {
  /** The values of `secret`. */
  readonly secrets: string[] = []
  readonly leftOut = new Set<string>()
  readonly added = new Map<string, ParameterSchema>()
  /** Names of added parameters that each run must have. */
  readonly required: string[] = []
  /** Why all runs fail: a key that is not set. */
  missingKey: string | undefined
  readonly #source: SettingsSource
  readonly #known = new Set(['type'])
  readonly #problems: DocumentPath[] = []

  constructor(source: SettingsSource) {
    this.#source = source
  }

  /** Returns the value as the document has it. Reports nothing. */
  value(name: string): unknown {
    const { engine } = this.#source
    this.#known.add(name)
    return Object.hasOwn(engine, name) ? (engine[name] ?? undefined) : undefined
  }

  text(name: string): string | undefined {
    const value = this.value(name)
    if (value === undefined || (typeof value === 'string' && value.trim() !== '')) return value
    this.report([name], typeof value === 'number' ? 'must be text: put it in quotes' : 'must be text')
    return undefined
  }

  /** Reports a missing text with the end of the message. */
  requiredText(name: string, example = ''): string | undefined {
    const value = this.text(name)
    if (value === undefined && !this.hasProblem([name])) this.report([name], `is missing${example}`)
    return value
  }

  /** Returns an http or https URL without a user name, a query or a fragment. `standard`: in place of a missing one. */
  url(name: string, standard?: string): URL {
    const value =
      (standard === undefined ? this.requiredText(name, URL_EXAMPLE) : this.text(name)) ?? standard
    if (value === undefined) return NO_URL
    const problem = urlProblem(value)
    if (problem === undefined) return new URL(value)
    this.report([name], problem)
    return NO_URL
  }

  /** Returns the map, or an empty one if the key is not set. */
  map(name: string): Readonly<Record<string, unknown>> {
    const value = this.value(name)
    if (isObject(value)) return value
    if (value !== undefined) this.report([name], 'must be a map')
    return {}
  }

  /** Returns the contents of a file whose path is relative to the document. */
  file(name: string, example: string): string | undefined {
    const path = this.requiredText(name, example)
    if (path === undefined) return undefined
    return readTextFile(resolve(this.#source.folder, path), MAX_FILE_MIB, (problem) =>
      this.report([name], `names "${shortened(path, 200)}", which ${problem}`),
    )
  }

  /** Returns the value of the variable that the key names, or of the default one. Reports a variable that is not set. */
  secret(name: string, standard?: string): string | undefined {
    const named = this.text(name)
    const variable = named ?? standard
    if (variable === undefined) return undefined
    const value = this.#source.env[variable]?.trim()
    if (value) {
      // For `user:password`, also the password alone.
      this.secrets.push(value, value.replace(/^[^:]*:/, ''))
      return value
    }
    const problem =
      named === undefined
        ? `needs the environment variable ${standard}, which is not set`
        : unsetVariable(variable)
    if (this.#source.allowsMissingKeys)
      this.missingKey = `The engine${named === undefined ? '' : `'s ${name}`} ${problem}.`
    else this.report(named === undefined ? [] : [name], problem)
    return undefined
  }

  /** Reports a problem at a path below `engine`. */
  report(path: DocumentPath, message: string): void {
    this.#problems.push(path)
    this.#source.report(path, message)
  }

  /** Like `report`, but not for the document of an accepted run, which was accepted with it. */
  reportNew(path: DocumentPath, message: string): void {
    if (!this.#source.isComplete) this.report(path, message)
  }

  checkKind({ kind }: ModelDocument, only: Kind): void {
    if (kind !== only) this.report(['type'], `${this.#source.engine.type} is only for models of kind ${only}`)
  }

  /** Whether a problem was reported at the path, or below it. */
  hasProblem(path: DocumentPath): boolean {
    return this.#problems.some((each) => path.every((step, index) => each[index] === step))
  }

  reportUnknownKeys(): void {
    const { engine } = this.#source
    for (const name of Object.keys(engine))
      if (!this.#known.has(name))
        this.report([name], unknownKey(name, [...this.#known], `an engine of type ${engine.type}`))
  }

  /**
   * Takes a parameter for which the engine has no place out of the model. Reports the problem instead if the document
   * itself names the parameter, or if it is required.
   */
  leaveOut(name: string, path: DocumentPath, message: string): void {
    const { named = [], needed = [] } = this.#source
    if (!named.includes(name) && !needed.includes(name)) this.leftOut.add(name)
    else this.reportNew(path, message)
  }

  /**
   * Adds a parameter to the model, or replaces a built-in one. No effect if the document itself names the parameter.
   * `isRequired`: whether each run must have a value.
   */
  offer(name: string, schema: ParameterSchema, isRequired = false): void {
    const { named = [], needed = [] } = this.#source
    if (named.includes(name) || needed.includes(name)) return
    this.added.set(name, schema)
    if (isRequired) this.required.push(name)
  }
}

const URL_EXAMPLE = '. Example: http://127.0.0.1:8000/v1'

/** Problem of the URL of a server. The message does not repeat the URL, which may contain a password. */
function urlProblem(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) return 'must be an http or https URL'
  if (url.username !== '' || url.password !== '')
    return 'must not contain a user name or a password: use key_env'
  return /[?#]/.test(value) ? 'must not contain a query or a fragment' : undefined
}

const isVariableName = (text: unknown): text is string =>
  typeof text === 'string' && /^[A-Z][A-Z0-9_]*$/.test(text)

/** Describes a variable without a value. A text that cannot be a name may be the key itself, which is not printed. */
const unsetVariable = (variable: string): string =>
  isVariableName(variable)
    ? `names ${variable}, which is not set in the environment. Set it to the key`
    : 'names a variable that is not set in the environment. Write the name of a variable, never the key itself'

/** `"stepz" is not a key of …. Did you mean "steps"?` */
export const unknownKey = (name: string, known: readonly string[], owner: string): string =>
  `"${shortened(name, 80)}" is not a key of ${owner}.${didYouMean(name, known)}`

/** Returns the text of a small file, or undefined after the report of why it cannot be read. */
export function readTextFile(
  path: string,
  maxMib: number,
  report: (problem: string) => void,
): string | undefined {
  try {
    const found = statSync(path)
    // A pipe or a device could be read without an end.
    if (!found.isFile()) report('is not a regular file')
    else if (found.size > maxMib * 1_048_576) report(`is larger than ${maxMib} MiB`)
    else return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))
  } catch (error) {
    report(error instanceof TypeError ? 'is not UTF-8 text' : `cannot be read: ${describeReason(error)}`)
  }
  return undefined
}
