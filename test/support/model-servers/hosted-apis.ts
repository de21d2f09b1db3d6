/** The endpoints of fal and Replicate for schemas and accounts, behind a `fetch`. They run no models. */
import { type Fetch, HttpFailure, type HttpRequest } from '../../../src/host/http.js'
import { writeJson } from '../../../src/protocol/json.js'
import { responseOf } from '../responses.js'

export interface Answer {
  readonly status: number
  readonly body?: unknown
}

interface HostedApis {
  readonly fetch: Fetch
  readonly requests: HttpRequest[]
  /** Answers by the beginning of the URL; the first that fits counts. A string is an error of the connection. */
  readonly routes: [start: string, answer: Answer | string][]
}

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
