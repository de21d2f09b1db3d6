/** What comes in is handed on in its order, and no more of it waits than there is room for. */
import { describe, expect, it } from 'vitest'
import { createInflow } from '../../src/host/inflow.js'

const MIB = 1_048_576

function newInflow() {
  const said: string[] = []
  const inflow = createInflow({
    hold: () => said.push('hold'),
    goOn: () => said.push('go on'),
    leave: () => said.push('leave'),
  })
  return { inflow, said, taking: inflow.chunks[Symbol.asyncIterator]() }
}

const bytes = (...values: readonly number[]) => Uint8Array.of(...values)

async function all(chunks: AsyncIterable<Uint8Array>): Promise<{ taken: number[]; error?: unknown }> {
  const taken: number[] = []
  try {
    for await (const chunk of chunks) taken.push(...chunk)
    return { taken }
  } catch (error) {
    return { taken, error }
  }
}

describe('an inflow', () => {
  it('hands on what came before it is asked, and what comes while it is', async () => {
    const { inflow, said } = newInflow()
    inflow.push(bytes(1, 2))
    const taken = all(inflow.chunks)
    await Promise.resolve()
    inflow.push(bytes(3))
    await new Promise((resolve) => setImmediate(resolve))
    inflow.push(bytes(4))
    inflow.end()
    expect(await taken).toEqual({ taken: [1, 2, 3, 4] })
    expect(said).toEqual([])
  })

  it('throws why it failed, after what came before', async () => {
    const { inflow } = newInflow()
    const why = new Error('the line broke')
    inflow.push(bytes(1))
    inflow.fail(why)
    inflow.fail(new Error('and again'))
    inflow.end()
    expect(await all(inflow.chunks)).toEqual({ taken: [1], error: why })
  })

  it('asks the sender to hold once, and to go on when half of it is taken', async () => {
    const { inflow, said, taking } = newInflow()
    for (let count = 0; count < 8; count++) inflow.push(new Uint8Array(MIB / 16))
    expect(said).toEqual(['hold'])
    for (let count = 0; count < 6; count++) await taking.next()
    expect(said).toEqual(['hold'])
    await taking.next()
    expect(said).toEqual(['hold', 'go on'])
  })

  it('says when the rest is not wanted, and nothing when there was no more', async () => {
    const early = newInflow()
    early.inflow.push(bytes(1))
    for await (const _ of early.inflow.chunks) break
    expect(early.said).toEqual(['leave'])
    const late = newInflow()
    late.inflow.push(bytes(1))
    late.inflow.end()
    for await (const _ of late.inflow.chunks) break
    expect(late.said).toEqual([])
  })
})
