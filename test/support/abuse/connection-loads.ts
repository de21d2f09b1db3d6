/** Loads of test/proof/abuse.proof.ts with many connections or many small requests. */
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  createHead,
  type Figures,
  type Line,
  MIB,
  openLine,
  openLines,
  outcomeOfLine,
  send,
  type Target,
  tally,
} from './requests.js'

const UNKNOWN_RUN = '/api/v1/runs/run_000000000000000000000000'

/** A thousand connections without a key that keep sending after a 401. */
export async function refusedConnections(target: Target): Promise<Figures> {
  const lines = await openLines(target, 1_000)
  for (const { socket } of lines)
    socket.write('POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n')
  let closedAfterS = 0
  for (let second = 1; second <= 8; second++) {
    await sleep(1_000)
    for (const { socket } of lines) if (socket.writable) socket.write('x')
    if (closedAfterS === 0 && lines.every((line) => !line.isOpen())) closedAfterS = second
  }
  const open = lines.filter((line) => line.isOpen()).length
  for (const { socket } of lines) socket.destroy()
  return { ...tally(lines.map(outcomeOfLine)), 'still open': open, 'all closed after s': closedAfterS }
}

/** Sends until the connection closes. Returns the number of bytes and the time after the response. */
async function sendOn(line: Line): Promise<{ readonly bytes: number; readonly ms: number }> {
  const block = Buffer.alloc(256 * 1024, ' ')
  let answeredAt: number | undefined
  let before = 0
  line.socket.once('data', () => {
    answeredAt = performance.now()
    before = line.socket.bytesWritten - line.socket.writableLength
  })
  const endAt = performance.now() + 10_000
  while (line.isOpen() && performance.now() < endAt) {
    const isRoom = line.socket.write(block)
    if (!isRoom)
      await Promise.race([new Promise((resolve) => line.socket.once('drain', resolve)), line.closed])
    else await new Promise((resolve) => setImmediate(resolve))
  }
  const written = line.socket.bytesWritten - line.socket.writableLength
  const outcome = {
    bytes: Math.max(0, written - before),
    ms: performance.now() - (answeredAt ?? performance.now()),
  }
  line.socket.destroy()
  return outcome
}

/** Clients that keep sending after a 401 and after a 413. */
export async function sendAfterRefusal(target: Target): Promise<Figures> {
  const heads = [createHead('rk_unknown', 50 * 1024 * MIB), createHead(target.keys[0] ?? '', 50 * 1024 * MIB)]
  const lines = await openLines(target, 4)
  const sent = await Promise.all(
    lines.map((line, index) => {
      line.socket.write(heads[index % 2] ?? '')
      return sendOn(line)
    }),
  )
  return {
    ...tally(lines.map(outcomeOfLine)),
    'MiB read afterwards, of all': Math.round(sent.reduce((sum, { bytes }) => sum + bytes, 0) / MIB),
    'closed after ms': Math.round(Math.max(...sent.map(({ ms }) => ms))),
  }
}

/** Headers that never end, sent byte by byte. */
export async function slowHeaders(target: Target): Promise<Figures> {
  const lines = await openLines(target, 900)
  for (const { socket } of lines) socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ')
  for (let second = 0; second < 23; second++) {
    await sleep(1_000)
    for (const { socket } of lines) if (socket.writable) socket.write('x')
  }
  const open = lines.filter((line) => line.isOpen()).length
  for (const { socket } of lines) socket.destroy()
  return { ...tally(lines.map(outcomeOfLine)), 'still open': open }
}

export async function unknownRuns(target: Target): Promise<Figures> {
  const agent = new Agent({ keepAlive: true, maxSockets: 100 })
  const keys = [...target.keys, ...target.others]
  const outcomes: string[] = []
  let sent = 0
  const sendOn = async () => {
    while (sent++ < 10_000)
      outcomes.push(
        (await send(target, keys[sent % keys.length] ?? '', UNKNOWN_RUN, undefined, agent)).outcome,
      )
  }
  await Promise.all(Array.from({ length: 100 }, sendOn))
  agent.destroy()
  return tally(outcomes)
}

/** Sends requests without waiting for responses. Some clients read the responses, others never do. */
export async function pipelined(target: Target): Promise<Figures> {
  const [key = ''] = target.keys
  const one = `GET ${UNKNOWN_RUN} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`
  const batch = one.repeat(2_000)
  const readers = await openLines(target, 10)
  let responses = 0
  for (const { socket } of readers) {
    socket.on('data', (text) => {
      responses += String(text).split('HTTP/1.1 ').length - 1
    })
    socket.write(one.repeat(90))
  }
  const deaf = await Promise.all(Array.from({ length: 20 }, () => openLine(target)))
  let written = 0
  for (let second = 0; second < 8; second++) {
    for (const { socket } of deaf) {
      socket.pause()
      if (socket.writable && socket.writableLength === 0) socket.write(batch)
    }
    await sleep(1_000)
  }
  for (const { socket } of deaf) written += socket.bytesWritten - socket.writableLength
  for (const { socket } of [...readers, ...deaf]) socket.destroy()
  return {
    'responses that were read': responses,
    'kB taken from clients that never read': Math.round(written / 1_000),
  }
}
