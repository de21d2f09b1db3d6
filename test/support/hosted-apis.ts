/** The endpoints of fal and Replicate for schemas and accounts, behind a `fetch`. They run no models. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Fetch, HttpFailure, type HttpRequest } from '../../src/host/http.js'
import { readJson, writeJson } from '../../src/protocol/json.js'
import { responseOf } from './responses.js'

const SCHEMAS = join(import.meta.dirname, '..', 'cli', 'imports', 'schemas')

/** A published schema of test/cli/imports/schemas. */
export const schemaFile = (name: string): string => join(SCHEMAS, `${name}.json`)
// biome-ignore lint/suspicious/noExplicitAny: tests change parts of the published schemas
export const schemaOf = (name: string): any => readJson(readFileSync(schemaFile(name), 'utf8'))

export interface Answer {
  readonly status: number
  readonly body?: unknown
}

export interface HostedApis {
  readonly fetch: Fetch
  readonly requests: HttpRequest[]
  /** Answers by the beginning of the URL; the first that fits counts. A string is an error of the connection. */
  readonly routes: [start: string, answer: Answer | string][]
}

export const FAL_SCHEMA = 'https://fal.ai/api/openapi/queue/openapi.json?endpoint_id='
export const FAL_MODELS = 'https://api.fal.ai/v1/models?'
export const REPLICATE = 'https://api.replicate.com/v1/'

export function createHostedApis(...routes: [start: string, answer: Answer | string][]): HostedApis {
  const requests: HttpRequest[] = []
  return {
    requests,
    routes,
    async fetch(request) {
      requests.push(request)
      const [, answer = { status: 404 }] =
        routes.find(([start]) => decodeURIComponent(request.url.href).startsWith(start)) ?? []
      if (typeof answer === 'string') throw new HttpFailure(answer, { sent: false, code: 'ECONNREFUSED' })
      const { status, body = null } = answer
      return responseOf({ status, body: typeof body === 'string' ? body : writeJson(body) })
    },
  }
}
