/** What every ledger of the client's rate limit keeps to: in a process, on a machine. */
import { expect, test } from 'vitest'
import type { Ledger, Purpose } from '../../src/limiter/index.js'
import type { NoSlotYet, SlotAnswer, TakenSlot } from '../../src/limiter/limit-ledger.js'
import { RUNS_LIMIT } from '../../src/protocol/limits.js'

const { requests: LIMIT, windowMs: WINDOW_MS } = RUNS_LIMIT

export interface LedgerBench {
  /** One more process that has the key. */
  open(key?: string): Ledger
  /** Time passes for all of them. */
  advance(ms: number): Promise<void>
}

export interface LedgerKind {
  create(): LedgerBench
  /** Whether the ledgers of one key that are opened share its slots. */
  readonly isShared: boolean
}

const isTaken = (answer: SlotAnswer): answer is TakenSlot => 'settle' in answer

function take(ledger: Ledger, purpose: Purpose = 'status'): TakenSlot {
  const answer = ledger.take(purpose)
  if (!isTaken(answer)) throw new Error(`no slot for ${answer.retryInMs} ms`)
  return answer
}

function fill(ledger: Ledger): readonly TakenSlot[] {
  const taken: TakenSlot[] = []
  while (taken.length < LIMIT) taken.push(take(ledger))
  return taken
}

const settleAll = (slots: readonly TakenSlot[]): void => {
  for (const slot of slots) slot.settle()
}

export function ledgerContract({ create, isShared }: LedgerKind): void {
  function expectWait(answer: SlotAnswer, ms: number): void {
    expect(isTaken(answer)).toBe(false)
    const { retryInMs } = answer as NoSlotYet
    expect(retryInMs).toBe(ms)
  }

  test('grants slots up to the limit, and then returns how long to wait', async () => {
    const { open, advance } = create()
    const ledger = open()
    settleAll(fill(ledger))
    expectWait(ledger.take('create'), WINDOW_MS)
    await advance(4_000)
    expectWait(ledger.take('create'), WINDOW_MS - 4_000)
    await advance(6_500)
    fill(ledger)
  })

  test('a slot counts until one window after its response, however late that arrives', async () => {
    const { open, advance } = create()
    const ledger = open()
    const [first, ...others] = fill(ledger)
    settleAll(others)
    await advance(600_000)
    expect(ledger.usedSlots()).toBe(1)
    const slots = [take(ledger), take(ledger)]
    expect(ledger.usedSlots()).toBe(3)
    settleAll([...slots, ...(first === undefined ? [] : [first])])
    await advance(9_000)
    expect(isTaken(ledger.take('status'))).toBe(true)
    await advance(1_500)
    for (let taken = 1; taken < LIMIT; taken++) take(ledger)
    expect(isTaken(ledger.take('status'))).toBe(false)
  })

  test('settling a slot twice has no further effect', async () => {
    const { open, advance } = create()
    const ledger = open()
    const slots = fill(ledger)
    settleAll(slots)
    await advance(5_000)
    settleAll(slots)
    await advance(5_500)
    fill(ledger)
  })

  test('a canceled slot is free at once, and settling it afterwards has no effect', async () => {
    const { open, advance } = create()
    const ledger = open()
    const [first] = fill(ledger)
    first?.cancel()
    first?.settle()
    take(ledger)
    await advance(0)
    expect(isTaken(ledger.take('status'))).toBe(false)
  })

  test('a hold grants no slot, cannot be shortened, and ends', async () => {
    const { open, advance } = create()
    const ledger = open()
    take(ledger)
    ledger.holdBack(9_000)
    ledger.holdBack(2_000)
    expectWait(ledger.take('create'), 9_000)
    await advance(9_500)
    take(ledger)
  })

  test.runIf(isShared)('slots of all processes count together', async () => {
    const { open } = create()
    const [one, other] = [open(), open()]
    for (let taken = 0; taken < LIMIT / 2; taken++) for (const ledger of [one, other]) take(ledger)
    for (const ledger of [one, other, open()]) {
      expectWait(ledger.take('status'), WINDOW_MS)
      expect(ledger.usedSlots()).toBe(LIMIT)
    }
  })

  test.runIf(isShared)('each key has its own slots', async () => {
    const { open } = create()
    fill(open('one'))
    fill(open('other'))
  })

  test.runIf(isShared)('a hold applies to every process', async () => {
    const { open } = create()
    const [told, other] = [open(), open()]
    take(told)
    told.holdBack(5_000)
    told.take('status')
    expectWait(other.take('create'), 5_000)
    expectWait(open().take('status'), 5_000)
  })

  /** One slot becomes free; two processes have waited for it, in this order. */
  async function waiting(first: Purpose, second: Purpose) {
    const { open, advance } = create()
    const [busy, one, other] = [open(), open(), open()]
    const [slot] = fill(busy)
    for (const [ledger, purpose] of [
      [one, first],
      [other, second],
    ] as const)
      expect(isTaken(ledger.take(purpose))).toBe(false)
    slot?.settle()
    return { one, other, advance }
  }

  test.runIf(isShared)('a create gets a free slot before a status request', async () => {
    const { one, other, advance } = await waiting('status', 'create')
    await advance(WINDOW_MS + 300)
    expect(isTaken(one.take('status'))).toBe(false)
    expect(isTaken(other.take('create'))).toBe(true)
  })

  test.runIf(isShared)('of two equal requests, the first to wait gets a free slot', async () => {
    const { one, other, advance } = await waiting('create', 'create')
    await advance(WINDOW_MS + 300)
    expect(isTaken(other.take('create'))).toBe(false)
    expect(isTaken(one.take('create'))).toBe(true)
  })

  test.runIf(isShared)('a waiting process that withdraws loses its turn', async () => {
    const { one, other, advance } = await waiting('create', 'status')
    one.withdraw('create')
    await advance(WINDOW_MS + 300)
    expect(isTaken(other.take('status'))).toBe(true)
  })

  test.runIf(isShared)('a waiting process that does not return is skipped', async () => {
    const { other, advance } = await waiting('create', 'status')
    await advance(WINDOW_MS + 300)
    expect(isTaken(other.take('status'))).toBe(false)
    await advance(2_000)
    expect(isTaken(other.take('status'))).toBe(true)
  })
}
