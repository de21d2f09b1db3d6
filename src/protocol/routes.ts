/** The two published endpoints. Source: section 4 of the interface. */

export const RUNS_PATH = '/api/v1/runs'

/** A base URL without trailing slashes: `https://host/prefix`. */
const withoutSlash = (baseUrl: string): string => baseUrl.replace(/\/+$/, '')

export const createRunUrl = (baseUrl: string): URL => new URL(`${withoutSlash(baseUrl)}${RUNS_PATH}`)

/** The id is percent-encoded, so that it stays one path segment. */
export const runUrl = (baseUrl: string, id: string): URL =>
  new URL(`${withoutSlash(baseUrl)}${RUNS_PATH}/${encodeURIComponent(id)}`)
