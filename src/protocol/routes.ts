/** The paths of the API. The two endpoints of runs are published: section 4 of the interface. */

export const RUNS_PATH = '/api/v1/runs'

/** The OpenAPI document of the local service. */
export const OPENAPI_PATH = '/api/v1/openapi.json'

/** A base URL without trailing slashes: `https://host/prefix`. */
const withoutSlash = (baseUrl: string): string => baseUrl.replace(/\/+$/, '')

export const createRunUrl = (baseUrl: string): URL => new URL(`${withoutSlash(baseUrl)}${RUNS_PATH}`)

/** The id is percent-encoded, so that it stays one path segment. */
export const runUrl = (baseUrl: string, id: string): URL =>
  new URL(`${withoutSlash(baseUrl)}${RUNS_PATH}/${encodeURIComponent(id)}`)
