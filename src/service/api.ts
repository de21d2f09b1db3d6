/** What a node needs to answer requests: the rules of the two endpoints, with their limits and the threads that read bodies. */

import { createEndpoints } from './endpoints.js'
import type { Storage } from './files/contract.js'
import type { ApiRoutes } from './http/app.js'
import { createBodyBudget } from './http/body-budget.js'
import { HTTP_LIMITS } from './http/connection-limits.js'
import { createIntake } from './intake/index.js'
import type { KeyLookup } from './key-lookup.js'
import { LOCAL_MODELS } from './local-models.js'
import type { RateLimiter } from './rate/contract.js'
import { createMemoryRateLimiter } from './rate/memory.js'
import type { ServiceOptions } from './service.js'
import type { ServiceStore } from './store/service-store.js'
import type { Worker } from './worker/worker.js'

const DEFAULT_BODY_LIMIT_BYTES = 64 * 1_048_576

/** The memory for bodies in flight, in bodies of the largest size. */
const BODIES_IN_FLIGHT = 4

export interface ApiParts {
  readonly options: ServiceOptions
  readonly store: ServiceStore
  readonly storage: Pick<Storage, 'outputs' | 'inputs'>
  readonly findKey: KeyLookup['find']
  /** Of the database; undefined when it has none. */
  readonly rateLimiter: RateLimiter | undefined
  readonly worker: Pick<Worker, 'wake' | 'prefer'>
  baseUrl(): string
}

export interface Api {
  readonly routes: ApiRoutes
  /** Call it when no request is in progress any more. */
  close(): Promise<void>
}

export function createApi({ options, store, storage, findKey, rateLimiter, worker, baseUrl }: ApiParts): Api {
  const { clock, bodyLimitBytes = DEFAULT_BODY_LIMIT_BYTES } = options
  const { outputs, inputs } = storage
  const models = { ...LOCAL_MODELS, ...options.models }
  const intake = createIntake(models)
  const endpoints = createEndpoints({
    store,
    intake,
    clock,
    rateLimiter: options.rateLimiter ?? rateLimiter ?? createMemoryRateLimiter(clock),
    worker,
    findKey,
    saveImage: ({ sha256, data, content_type: contentType }) =>
      inputs.put(sha256, { bytes: data }, { contentType }),
  })
  return {
    routes: {
      runs: {
        endpoints,
        baseUrl,
        bodyLimits: {
          maxBytes: bodyLimitBytes,
          pace: { ...HTTP_LIMITS, ...options.httpLimits },
          budget: createBodyBudget(BODIES_IN_FLIGHT * bodyLimitBytes),
          clock,
        },
        logPrompts: options.logging?.prompts ?? false,
      },
      outputs: { files: outputs, findOutput: store.findOutput },
      openapi: { models, baseUrl },
    },
    close: intake.close,
  }
}
