/**
 * The interface of a type of engine (`engine: {type: images}` in a model's document). A type reads its settings, with
 * all problems at their places, before the service listens; the result creates the engine.
 */
import type { Clock } from '../../host/clock.js'
import type { HttpResponse, ServerRequest } from '../../host/http.js'
import type { ModelDocument } from '../../protocol/models.js'
import type { Engine } from './engine.js'
import type { EngineSettings } from './settings.js'

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
