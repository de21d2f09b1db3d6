/**
 * The ledger of several machines: the contract of all ledgers, and what only a Redis server shows (leases, its loss and its return,
 * servers that cannot be used).
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { systemClock } from '../../src/host/clock.js'
import { createLimiter } from '../../src/limiter/index.js'
import type { TakenSlot } from '../../src/limiter/limit-ledger.js'
import { openRedisLedger, type RedisLedger, redisKeyOf } from '../../src/limiter/redis/redis-ledger.js'
import { RUNS_LIMIT } from '../../src/protocol/limits.js'
import { ledgerContract } from '../contract/ledger.js'
import { createManualClock } from '../support/clock.js'
import { describeAnyRedis, describeRedis, freePort, startRedis } from '../support/redis.js'
import { until } from '../support/until.js'
import { addressOf, createRedisBench, type RedisBench } from './redis-bench.js'

const { requests: LIMIT, windowMs: WINDOW_MS } = RUNS_LIMIT

async function take(ledger: RedisLedger, count = 1): Promise<readonly TakenSlot[]> {
  const taken: TakenSlot[] = []
  while (taken.length < count) {
    const answer = await ledger.take('status')
    if (!('settle' in answer)) throw new Error(`no slot for ${answer.retryInMs} ms`)
    taken.push(answer)
  }
  return taken
}

const settleAll = (slots: readonly TakenSlot[]): void => {
  for (const slot of slots) slot.settle()
}

const slotsIn = (stored: Readonly<Record<string, string>>): number =>
  Object.keys(stored).filter((field) => field.startsWith('slot:')).length

/** What is stored once it has so many slots. A return that failed, on a busy machine, is tried again as time passes. */
const entered = (bench: RedisBench, slots: number) =>
  until(`${slots} slots on the server`, async () => {
    const stored = await bench.stored()
    if (slotsIn(stored) === slots) return stored
    await bench.advance(100)
    return undefined
  })

/** A ledger on the system of this test alone, with the reason why it was lost. */
function openOn(url: string, keyHash = 'test') {
  const lost: string[] = []
  const clock = createManualClock()
  const ledger = openRedisLedger({
    address: addressOf(url),
    keyHash,
    clock,
    onLost: ({ message }) => lost.push(message),
  })
  onTestFinished(() => ledger.close())
  return { ledger, lost, clock }
}

/**
 * Counts the ticks of waits for the server, 25 ms each, of all ledgers: ten are one wait of 250 ms. A busy machine makes
 * them longer, not more.
 */
function countTicks(): () => number {
  const alarm = vi.spyOn(systemClock, 'alarm')
  onTestFinished(() => void alarm.mockRestore())
  return () => alarm.mock.calls.length
}
const TICKS_OF_A_WAIT = 10

describeAnyRedis('the ledger of several machines', (url) => {
  ledgerContract({
    isShared: true,
    inexactMs: 2_000,
    create: async () => createRedisBench(await url()),
  })
})

describeRedis('slots of dead and living processes', () => {
  it('a request in flight keeps its slot as long as its process lives', async () => {
    const bench = createRedisBench((await startRedis()).url)
    await take(bench.open(), LIMIT)
    await bench.advance(300_000)
    expect(await bench.open().take('create')).toHaveProperty('retryInMs')
  })

  it('a killed process gives its slots back when their lease is over, and one window has passed', async () => {
    const server = await startRedis()
    const bench = createRedisBench(server.url)
    const killed = bench.open()
    await take(killed, LIMIT)
    // Nothing is settled or renewed any more.
    await killed.close()
    const other = bench.open()
    await bench.advance(24_000)
    expect(await other.take('create')).toHaveProperty('retryInMs')
    await bench.advance(1_500)
    await take(other, LIMIT)
  })

  it('a request that is aborted while the server is asked leaves no slot there', async () => {
    const bench = createRedisBench((await startRedis()).url)
    const ledger = bench.open()
    const limiter = createLimiter(createManualClock(), ledger)
    await limiter.acquire('status')
    const stop = new AbortController()
    const aborted = expect(limiter.acquire('create', stop.signal)).rejects.toBe('stop')
    stop.abort('stop')
    await aborted
    // Asked after it, and answered after it.
    await until('the slot of the aborted request', async () => {
      await bench.advance(0)
      return ledger.usedSlots() === 1 && slotsIn(await bench.stored()) === 1
    })
    for (let taken = 1; taken < LIMIT; taken++) await limiter.acquire('create')
    expect(slotsIn(await bench.stored())).toBe(LIMIT)
  })

  it('closing sends the answers that came before it', async () => {
    const bench = createRedisBench((await startRedis()).url)
    const ended = bench.open()
    settleAll(await take(ended, LIMIT))
    await ended.close()
    await bench.advance(WINDOW_MS + 500)
    await take(bench.open(), LIMIT)
  })

  it('when the clock of the server is set back, what was stored holds for 25 s at most', async () => {
    const server = await startRedis()
    const bench = createRedisBench(server.url)
    const first = bench.open()
    settleAll(await take(first, LIMIT))
    first.holdBack(5_000)
    await first.close()
    // An hour more in the store is an hour less on the clock.
    await bench.advance(-3_600_000)
    const stored = await bench.stored()
    expect(slotsIn(stored)).toBe(LIMIT)
    const other = bench.open()
    expect(await other.take('create')).toHaveProperty('retryInMs')
    await bench.advance(25_500)
    await take(other, LIMIT)
  })

  it('names the key by a hash, and stores nothing that lasts', async () => {
    const server = await startRedis()
    const { ledger } = openOn(server.url, 'abc')
    settleAll(await take(ledger, 3))
    const client = server.client()
    expect(await client.keys('*')).toEqual([redisKeyOf('abc')])
    expect(await client.pttl(redisKeyOf('abc'))).toBeLessThanOrEqual(90_000)
  })
})

describeRedis('a server that goes away and returns', () => {
  it('is replaced by the limit of this machine, and counts its grants before it grants again', async () => {
    const server = await startRedis()
    const bench = createRedisBench(server.url)
    const [one, other] = [bench.open(), bench.open()]
    settleAll([...(await take(one, 2)), ...(await take(other, 1))])
    await server.kill()
    const meanwhile = [...(await take(one, 8)), ...(await take(other, 9))]
    settleAll(meanwhile.slice(1))
    // What the system says of a killed server depends on what it had not read yet.
    const closed = expect.stringMatching(
      /^(the connection was (closed|reset)|connection refused|write EPIPE)/,
    )
    expect(bench.lost).toEqual([closed, closed])
    // In its memory too the machine counts all of them.
    for (const ledger of [one, other]) expect(ledger.usedSlots()).toBe(10)
    await server.restart()
    await bench.advance(1_000)
    await entered(bench, 20)
    expect(await bench.open().take('create')).toHaveProperty('retryInMs')
    await bench.advance(WINDOW_MS + 2_000)
    // All but the one whose answer has not come.
    await take(bench.open(), LIMIT - 1)
    expect(await bench.open().take('status')).toHaveProperty('retryInMs')
    expect(bench.lost).toHaveLength(2)
  })

  it('grants nothing for a moment after a return, once', async () => {
    const server = await startRedis()
    const bench = createRedisBench(server.url)
    const [one, other] = [bench.open(), bench.open()]
    await take(one)
    await take(other)
    await server.kill()
    await take(one)
    await take(other)
    await server.restart()
    await bench.advance(1_000)
    const { held } = await entered(bench, 4)
    const answer = await bench.open().take('create')
    expect(answer).toHaveProperty('retryInMs')
    expect((answer as { retryInMs: number }).retryInMs).toBeLessThanOrEqual(1_500)
    expect((await bench.stored()).held).toBe(held)
    await bench.advance(1_600)
    await take(bench.open())
  })

  it('costs one wait of 250 ms while it is stopped, and its late answers change nothing', async () => {
    const server = await startRedis()
    const bench = createRedisBench(server.url)
    const ledger = bench.open()
    settleAll(await take(ledger, 4))
    // Its answer follows those to the four reports, each of which would wait for the server that is stopped.
    await take(ledger)
    server.signal('SIGSTOP')
    const ticks = countTicks()
    settleAll(await take(ledger, 15))
    expect(ticks()).toBeLessThanOrEqual(TICKS_OF_A_WAIT)
    expect(bench.lost).toEqual(['no answer within 250 ms'])
    server.signal('SIGCONT')
    await bench.advance(1_000)
    await entered(bench, LIMIT)
    expect(await bench.open().take('create')).toHaveProperty('retryInMs')
  })

  it('learns of a 429 that came while it was away', async () => {
    const server = await startRedis()
    const bench = createRedisBench(server.url)
    const ledger = bench.open()
    await take(ledger)
    await server.kill()
    await take(ledger)
    ledger.holdBack(30_000)
    await server.restart()
    await bench.advance(1_000)
    await entered(bench, 2)
    const answer = await bench.open().take('create')
    expect(answer).toEqual({ retryInMs: WINDOW_MS + 10 })
  })
})

describeRedis('a server that cannot be used', () => {
  const SCRIPTING = ['--user', ...'ci on >secret ~* +@all -@scripting'.split(' ')]
  const REPLICA = ['--replicaof', '127.0.0.1 1', '--replica-serve-stale-data', 'yes']
  it.each<[string, words: readonly string[], user: string, reason: RegExp]>([
    [
      'wants another password',
      ['--requirepass', 'x'],
      ':secret@',
      /^wrong user name or password \(WRONGPASS/,
    ],
    ['wants a password', ['--requirepass', 'x'], '', /^the server requires a password \(NOAUTH/],
    ['allows no scripts', SCRIPTING, 'ci:secret@', /^the user may not run the script \(NOPERM/],
    ['is a replica', REPLICA, '', /^the server is a read-only replica \(READONLY/],
    ['lacks the command', ['--rename-command', 'EVAL', ''], '', /^ERR unknown command 'eval'$/i],
  ])(
    'that %s: the limit of the machine holds, and the reason is told once',
    async (_, words, user, reason) => {
      const server = await startRedis(words)
      const { ledger, lost, clock } = openOn(`redis://${user}127.0.0.1:${server.port}`)
      settleAll(await take(ledger, LIMIT))
      expect(await ledger.take('status')).toEqual({ retryInMs: WINDOW_MS })
      await clock.advance(20_000)
      await take(ledger, LIMIT)
      expect(lost).toEqual([expect.stringMatching(reason)])
      expect(lost.join()).not.toContain('secret')
    },
  )

  it('since its key has another type', async () => {
    const server = await startRedis()
    await server.client().set(redisKeyOf('test'), 'text')
    const { ledger, lost } = openOn(server.url)
    await take(ledger, LIMIT)
    expect(lost).toEqual([expect.stringMatching(/^another program uses the key/)])
  })

  it('these permissions are enough', async () => {
    const rules = 'ci on >secret ~rushes:limits:* +eval +time +hset +hgetall +hdel +pexpire'
    const server = await startRedis(['--user', ...rules.split(' ')])
    const { ledger, lost } = openOn(`redis://ci:secret@127.0.0.1:${server.port}`)
    const [slot] = await take(ledger, LIMIT)
    slot?.settle()
    ledger.holdBack(1)
    expect(await ledger.take('create')).toHaveProperty('retryInMs')
    expect(lost).toEqual([])
  })

  it('another database is another budget', async () => {
    const server = await startRedis()
    await take(openOn(`${server.url}/0`).ledger, LIMIT)
    await take(openOn(`${server.url}/5`).ledger, LIMIT)
  })
})

describeRedis('a cluster', () => {
  it('names the node that has the key', async () => {
    const words = ['--cluster-enabled', 'yes', '--cluster-config-file']
    const nodes = [
      await startRedis([...words, `nodes-${await freePort()}-${process.pid}.conf`]),
      await startRedis([...words, `nodes-${await freePort()}-${process.pid}.conf`]),
    ] as const
    const [one, other] = [nodes[0].client(), nodes[1].client()]
    await one.cluster('ADDSLOTSRANGE', 0, 8_191)
    await other.cluster('ADDSLOTSRANGE', 8_192, 16_383)
    await one.cluster('MEET', '127.0.0.1', nodes[1].port)
    for (const node of [one, other])
      await until('the cluster is up', async () => (await node.cluster('INFO')).includes('cluster_state:ok'))
    const first = openOn(nodes[0].url)
    await take(first.ledger, LIMIT / 2)
    const second = openOn(nodes[1].url)
    await take(second.ledger, LIMIT / 2)
    expect(await first.ledger.take('create')).toHaveProperty('retryInMs')
    expect([...first.lost, ...second.lost]).toEqual([])
  })
})

describe('no server at all', () => {
  async function listen(onConnection: (socket: Socket) => void): Promise<string> {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      onConnection(socket)
      onTestFinished(() => void socket.destroy())
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  it.each<[string, () => Promise<string>, string]>([
    ['nothing listens', async () => `redis://127.0.0.1:${await freePort()}`, 'connection refused'],
    ['it never answers', () => listen(() => {}), 'no answer within 250 ms'],
    [
      'it is no Redis server',
      () => listen((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
      'the server is not a Redis server',
    ],
    ['it hangs up', () => listen((socket) => socket.destroy()), 'the connection was closed'],
  ])('%s: costs one short wait, and the limit of the machine holds', async (_, urlOf, reason) => {
    const url = await urlOf()
    const ticks = countTicks()
    const { ledger, lost, clock } = openOn(url)
    settleAll(await take(ledger, LIMIT))
    expect(ticks()).toBeLessThanOrEqual(2 * TICKS_OF_A_WAIT)
    expect(await ledger.take('status')).toEqual({ retryInMs: WINDOW_MS })
    await clock.advance(WINDOW_MS)
    await take(ledger, LIMIT)
    expect(lost).toEqual([reason])
  })

  it('closing does not wait for it', async () => {
    const url = await listen(() => {})
    const ticks = countTicks()
    const { ledger } = openOn(url)
    await ledger.close()
    expect(ticks()).toBeLessThan(TICKS_OF_A_WAIT)
  })
})
