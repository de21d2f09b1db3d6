/**
 * The interface of a type of engine (`engine: {type: images}` in a model's document). A type reads its settings, with
 * all problems at their places, before the service listens; the result creates the engine.
 */
import type { Clock } from '../../host/clock.js'
import type { HttpResponse, ServerRequest } from '../../host/http.js'
import type { DocumentPath, ReportProblem } from '../../protocol/model-document.js'
import type { ModelDocument, ParameterSchema } from '../../protocol/models.js'
import type { Engine } from './engine.js'

export type ReadEngine = (settings: EngineSettings, document: ModelDocument) => CreateEngine

export type CreateEngine = (parts: EngineParts) => Engine

/** What a node gives to all of its engines. */
export interface ServerParts {
  readonly clock: Clock
  /** Sends requests to the servers of models. It adds no key and follows no redirect. */
  fetch(request: ServerRequest): Promise<HttpResponse>
}

export interface EngineParts extends ServerParts {
  readonly env: Readonly<Record<string, string | undefined>>
  /** URLs of the service's database and storage, whose secrets no command gets. */
  readonly urls: readonly (string | undefined)[]
  /** Creates the built-in renderer, once for all models that use it. */
  preview(): Engine
}

/**
 * Reads the map `engine` of a document. Every method reports a value of another type and then returns undefined. A key
 * that no method was called for is reported as unknown.
 */
export interface EngineSettings {
  /** Returns the text, or undefined if the key is not set. */
  text(name: string): string | undefined
  /** Returns the number if it is greater than 0, or undefined if the key is not set. Reports any other number. */
  number(name: string): number | undefined
  /** Returns an http or https URL without a user name, a query or a fragment. Reports a missing one, unless it has a default. */
  url(name: string, standard?: string): URL | undefined
  /** Returns the map, or an empty one if the key is not set. */
  map(name: string): Readonly<Record<string, unknown>>
  /** Returns the value as the document has it. Reports nothing. */
  value(name: string): unknown
  /**
   * Returns the contents of a file whose path is relative to the document. Reports an unreadable one, and a missing one
   * with the end of the message.
   */
  file(name: string, example: string): string | undefined
  /**
   * Returns the value of the variable that the key names, or of the default one. Reports a variable that is not set.
   * `isOptional`: the default one may be missing.
   */
  secret(name: string, standard?: string, isOptional?: boolean): string | undefined
  /** Reports a problem at a path below `engine`. */
  readonly report: ReportProblem
  /** Warns of a value that is accepted. */
  readonly warn: ReportProblem
  /**
   * Takes a parameter for which the engine has no place out of the model. Reports the problem instead if the document
   * itself names the parameter, or if it is required, unless `isRequiredToo`.
   */
  leaveOut(parameter: string, path: DocumentPath, message: string, isRequiredToo?: boolean): void
  /**
   * Adds a parameter to the model, or replaces a built-in one. No effect if the document itself names the parameter.
   * `isRequired`: whether each run must have a value.
   */
  offer(parameter: string, schema: ParameterSchema, isRequired?: boolean): void
  /** Describes what the engine has found by itself, for the line that is printed at the start. */
  note(text: string): void
  /** Whether a problem was reported at this path or below it. */
  hasProblem(path: DocumentPath): boolean
}
