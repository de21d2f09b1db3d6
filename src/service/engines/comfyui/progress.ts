/** The progress of a job by the server's events. Every failure is ignored. */
import { openWebSocket } from '../../../host/undici.js'
import { isObject, parseJson } from '../../../protocol/parse.js'
import type { RenderJob } from '../engine.js'

/** Returns the function that ends it. */
export type FollowProgress = (clientId: string, jobId: string, report: RenderJob['onProgress']) => () => void

const MAX_CHARACTERS = 1_048_576

export function createFollowProgress(url: URL, key: string | undefined): FollowProgress {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` }
  return (clientId, jobId, report) => {
    if (report === undefined) return () => {}
    const address = `${url.href.replace(/^http/, 'ws').replace(/\/+$/, '')}/ws?clientId=${clientId}`
    let reported = 0
    let isEnded = false
    const opening = openWebSocket(new URL(address), headers).then((socket) => {
      socket.onmessage = ({ data }) => {
        const fraction =
          typeof data === 'string' && data.length <= MAX_CHARACTERS ? fractionOf(data, jobId) : 0
        if (isEnded || !(fraction > reported && fraction <= 1)) return
        reported = fraction
        report(fraction)
      }
      return socket
    })
    opening.catch(() => {})
    return () => {
      isEnded = true
      opening.then((socket) => socket.close()).catch(() => {})
    }
  }
}

/** Counts only nodes of several steps: loaders and encoders take one. Returns NaN for an event of another kind. */
function fractionOf(text: string, jobId: string): number {
  const parsed = parseJson(text)
  const { type, data } = parsed.ok && isObject(parsed.value) ? parsed.value : {}
  if (!isObject(data) || data.prompt_id !== jobId) return Number.NaN
  let value = 0
  let max = 0
  for (const node of type === 'progress' ? [data] : Object.values(isObject(data.nodes) ? data.nodes : {}))
    if (isObject(node) && Number(node.max) > 1) {
      value += Number(node.value)
      max += Number(node.max)
    }
  return value / max
}
