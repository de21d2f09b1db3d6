/** What a node needs to answer requests: the rules of the two endpoints, with their limits and the threads that read bodies. */

import { createConsole } from './console/index.js'
import type { Page } from './console/page.js'
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
  /** That of the console; undefined: without a console. */
  readonly page: Page | undefined
  baseUrl(): string
  onError(error: unknown): void
}

export interface Api {
  readonly routes: ApiRoutes
  /** Call it when no request is in progress any more. */
  close(): Promise<void>
}

export function createApi(parts: ApiParts): Api {
  const { options, store, storage, findKey, worker, page, baseUrl, onError } = parts
  const { clock, bodyLimitBytes = DEFAULT_BODY_LIMIT_BYTES } = options
  const { outputs, inputs } = storage
  const models = { ...LOCAL_MODELS, ...options.models }
  const rateLimiter = options.rateLimiter ?? parts.rateLimiter ?? createMemoryRateLimiter(clock)
  const intake = createIntake(models)
  const endpoints = createEndpoints({
    store,
    intake,
    clock,
    rateLimiter,
    worker,
    findKey,
    inputs,
    onError,
  })
  const runs: ApiRoutes['runs'] = {
    endpoints,
    baseUrl,
    bodyLimits: {
      maxBytes: bodyLimitBytes,
      pace: { ...HTTP_LIMITS, ...options.httpLimits },
      budget: createBodyBudget(BODIES_IN_FLIGHT * bodyLimitBytes),
      clock,
    },
    logPrompts: options.logging?.prompts ?? false,
  }
  const { publicUrl } = options
  return {
    routes: {
      runs,
      outputs: { files: outputs, findOutput: store.findOutput },
      openapi: { models, baseUrl, hasConsole: page !== undefined },
      console: page && {
        console: createConsole({
          store,
          outputs,
          clock,
          rateLimiter,
          models,
          thumbnailEngine: options.thumbnailEngine,
          passwords: options.passwords,
          baseUrl,
          onError,
        }),
        runs,
        page: { page, publicUrl, outputsOrigin: createOutputsOrigin(outputs) },
        publicUrl,
      },
    },
    close: intake.close,
  }
}

/** Where outputs are redirected to; undefined when the service sends them. It is the same for all of them. */
function createOutputsOrigin({ signedUrl }: Storage['outputs']): () => Promise<string | undefined> {
  let origin: string | undefined
  return async () => {
    if (signedUrl === undefined || origin !== undefined) return origin
    try {
      const request = { method: 'GET', contentType: 'image/png', contentDisposition: 'inline' } as const
      origin = new URL(await signedUrl('origin', request)).origin
    } catch {
      // Without credentials no output can be read, so no page needs the origin.
    }
    return origin
  }
}
