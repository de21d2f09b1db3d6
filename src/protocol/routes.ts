/** The paths of the API. The two endpoints of runs are published: section 4 of the interface. */

import type { Kind } from './models.js'

export const RUNS_PATH = '/api/v1/runs'

/** The OpenAPI document of the local service. */
export const OPENAPI_PATH = '/api/v1/openapi.json'

/** In that document, the schema of the body of a create. */
export const createSchemaName = (kind: Kind): string =>
  `Create${kind.charAt(0).toUpperCase()}${kind.slice(1)}Run`

/** A base URL without trailing slashes: `https://host/prefix`. */
const withoutSlash = (baseUrl: string): string => baseUrl.replace(/\/+$/, '')

export const createRunUrl = (baseUrl: string): URL => new URL(`${withoutSlash(baseUrl)}${RUNS_PATH}`)

/** The id is percent-encoded, so that it stays one path segment. */
export const runUrl = (baseUrl: string, id: string): URL =>
  new URL(`${withoutSlash(baseUrl)}${RUNS_PATH}/${encodeURIComponent(id)}`)
