/** Where the two published endpoints are. Source: the interface's section 4. */

export const RUNS_PATH = '/api/v1/runs'

/** A base address without the slash that would double: `https://host/prefix`. */
const withoutSlash = (baseUrl: string): string => baseUrl.replace(/\/+$/, '')

export const createRunUrl = (baseUrl: string): URL => new URL(`${withoutSlash(baseUrl)}${RUNS_PATH}`)

/** An id is percent-encoded whole: whatever it holds, it stays one segment of the path. */
export const runUrl = (baseUrl: string, id: string): URL =>
  new URL(`${withoutSlash(baseUrl)}${RUNS_PATH}/${encodeURIComponent(id)}`)
