/**
 * Stops the real program with SIGSTOP while it waits for a response, and continues it with SIGCONT after its timeout.
 * The response has then already arrived in the socket.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createPlace, type Ended, type Place, type Running, start } from './binary.js'
import { ONE_PIXEL_PNG } from './engines.js'
import { until } from './until.js'

const ID = 'run_slept'

/** Request during which the program is suspended. */
export type Asked = 'create' | 'status' | 'output'

export interface Suspension {
  readonly words: readonly string[]
  readonly asked: Asked
  /** Milliseconds from the stop to the response (`answerAfterMs`), and to SIGCONT (`continueAfterMs`). */
  readonly answerAfterMs: number
  readonly continueAfterMs: number
}

export interface Suspended extends Ended {
  readonly place: Place
  readonly outputUrl: string
  readonly requests: readonly string[]
}

export async function suspended({
  words,
  asked,
  answerAfterMs,
  continueAfterMs,
}: Suspension): Promise<Suspended> {
  const requests: string[] = []
  let program: Running | undefined

  async function holdBack(answer: () => void): Promise<void> {
    const running = await until('the program', () => program)
    running.kill('SIGSTOP')
    await until('the stop', () => isStopped(running.pid) || undefined)
    setTimeout(answer, answerAfterMs)
    setTimeout(() => running.kill('SIGCONT'), continueAfterMs)
  }
  const server = createServer((request, response) => {
    const kind = request.url === '/fox.png' ? 'output' : request.method === 'POST' ? 'create' : 'status'
    requests.push(kind)
    const answer = () => ANSWERS[kind](response, outputUrl)
    if (kind === asked && requests.filter((each) => each === kind).length === 1) void holdBack(answer)
    else answer()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const outputUrl = `${url}/fox.png`
  const place = createPlace().with({
    RUSHES_BASE_URL: url,
    RUSHES_API_KEY: 'sk-suspended',
    RUSHES_IMAGE_MODEL: 'acme/still-1',
  })
  program = start(place, words, { stdin: 'ignore' })
  const ended = await program.ended
  server.closeAllConnections()
  server.close()
  return { ...ended, place, outputUrl, requests }
}

const sendJson = (response: ServerResponse, status: number, body: unknown) =>
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

const ANSWERS: Readonly<Record<Asked, (response: ServerResponse, outputUrl: string) => void>> = {
  create: (response) => sendJson(response, 201, { id: ID, status: 'queued' }),
  status: (response, outputUrl) =>
    sendJson(response, 200, { id: ID, status: 'succeeded', output: { urls: [outputUrl] } }),
  output: (response) => response.writeHead(200, { 'content-type': 'image/png' }).end(ONE_PIXEL_PNG),
}

/** Reads the third field of `/proc/<pid>/stat`. The second field is the name in parentheses. */
const isStopped = (pid: number): boolean =>
  /^T/.test(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, ''))
