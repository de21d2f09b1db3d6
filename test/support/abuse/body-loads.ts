/**
 * Loads of test/proof/abuse.proof.ts that send request bodies. Each sends what one client could send, and counts the
 * outcomes.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  create,
  createBody,
  createHead,
  createMany,
  type Figures,
  IMAGE_MODEL,
  MIB,
  openLines,
  outcomeOfLine,
  send,
  type Target,
  tally,
  VIDEO_MODEL,
} from './requests.js'

const LARGE_BYTES = 62 * MIB

/** Returns a body of at most this size: `start`, then `part` as often as it fits, then `end`. */
function filled(bytes: number, start: string, part: string, end: string): Buffer {
  const body = Buffer.alloc(bytes)
  // Contains only whole parts.
  const length = start.length + Math.floor((bytes - start.length - end.length) / part.length) * part.length
  body.fill(part, start.length)
  body.write(start)
  body.write(end, length)
  return body.subarray(0, length + end.length)
}

const inInput = (bytes: number, start: string, part: string, end: string) =>
  filled(bytes, `{"model":"${IMAGE_MODEL}","input":{"prompt":"a fox","x":${start}`, part, `${end}}}`)

export const openingBrackets = (target: Target): Promise<Figures> =>
  createMany(target, target.keys, Buffer.alloc(64_000_000, '['), { count: 16, atOnce: 4 })

export const emptyLists = (target: Target): Promise<Figures> =>
  createMany(target, target.keys, filled(60_000_000, '{"model":"a/b","x":[[]', ',[]', ']}'), {
    count: 16,
    atOnce: 4,
  })

export const emptyObjects = (target: Target): Promise<Figures> =>
  createMany(target, target.keys, inInput(60_000_000, '[{}', ',{}', ']'), { count: 16, atOnce: 4 })

/** Bodies at the limits and just above: number of values, depth, and both. */
export async function manyValues(target: Target): Promise<Figures> {
  const [key = '', second = '', third = ''] = target.keys
  const accepted = await Promise.all(
    Array.from({ length: 8 }, () => create(target, key, inInput(19_900, '[1', ',1', ']'))),
  )
  const prompt = 'x'.repeat(100_000)
  const largest = createBody(IMAGE_MODEL, { prompt, x: 'y'.repeat(65_000) })
  accepted.push(...(await Promise.all(Array.from({ length: 8 }, () => create(target, second, largest)))))
  const ids = accepted.flatMap(({ body }) => (typeof body?.id === 'string' ? [body.id] : []))
  const statuses: string[] = []
  for (const id of ids) statuses.push(`status ${(await send(target, third, `/api/v1/runs/${id}`)).outcome}`)
  const [other = ''] = target.others
  const refused = [
    await create(target, other, inInput(40_000, '[1', ',1', ']')),
    await create(target, other, inInput(40_000_000, '[1', ',1', ']')),
    await create(target, other, `{"model":"a/b","input":${'['.repeat(1_000)}${']'.repeat(1_000)}}`),
    await create(target, other, inInput(60_000_000, '{"a":1', ',"a":1', '}')),
    await create(target, other, inInput(60_000_000, '"', 'x', '"')),
    await create(target, other, createBody(IMAGE_MODEL, { prompt: 'x'.repeat(60_000_000) })),
    await create(target, other, inInput(60_000_000, '"', '\\u0000', '"')),
  ]
  return tally([...accepted, ...refused].map(({ outcome }) => outcome).concat(statuses))
}

/** Twenty bodies that are almost complete and then continue at 1.7 kB per second. */
export async function slowBodies(target: Target): Promise<Figures> {
  const lines = await openLines(target, 20)
  const body = Buffer.alloc(LARGE_BYTES - MIB, ' ')
  const keys = [target.keys[0], target.others[0]]
  for (const [index, { socket }] of lines.entries()) {
    socket.write(createHead(keys[index % 2] ?? '', LARGE_BYTES))
    socket.write(body)
  }
  for (let second = 0; second < 15; second++) {
    await sleep(1_000)
    for (const { socket } of lines) if (socket.writable) socket.write(Buffer.alloc(1_700, ' '))
  }
  const outcomes = lines.map(outcomeOfLine)
  for (const { socket } of lines) socket.destroy()
  return tally(outcomes)
}

/** The same bodies at full speed, repeated. */
export const fastBodies = (target: Target): Promise<Figures> =>
  createMany(
    target,
    [target.keys[0] ?? '', target.others[0] ?? ''],
    filled(LARGE_BYTES, createBody(IMAGE_MODEL, {}).slice(0, -2), ' ', '}}'),
    { count: 40, atOnce: 20 },
  )

const largeImage = () =>
  filled(
    LARGE_BYTES,
    `{"model":"${IMAGE_MODEL}","input":{"prompt":"a fox","image_urls":["data:image/png;base64,`,
    'iVBORw0KGgoA',
    '"]}}',
  )

export const largeImages = (target: Target): Promise<Figures> =>
  createMany(target, [...target.keys, ...target.others], largeImage(), { count: 18, atOnce: 9 })

export async function hugeNumbers(target: Target): Promise<Figures> {
  const [key = ''] = target.keys
  const digits = '9'.repeat(60_000_000)
  const inputs = [
    '"x":1e999',
    '"x":[{"y":[-1e999]}]',
    '"seed":1e999',
    `"x":${digits}`,
    `"x":1e${digits}`,
    `"x":[${'1e999,'.repeat(9_000)}1]`,
  ]
  const outcomes: string[] = []
  for (const input of inputs) {
    const body = `{"model":"${VIDEO_MODEL}","input":{"prompt":"a fox",${input}}}`
    outcomes.push((await create(target, key, body)).outcome)
  }
  return tally(outcomes)
}
