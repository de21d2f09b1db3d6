/** Groups of results, as the page shows them. */
import { describe, expect, it } from 'vitest'

interface Item {
  readonly run: {
    readonly prompt: string
    readonly model: string
    readonly time: number
    readonly labels: readonly string[]
    readonly estimate?: { readonly millionths: number; readonly currency: string }
  }
  readonly order: number
  readonly part: number
}
interface Section {
  readonly name: unknown
  readonly items: readonly Item[]
  readonly units: readonly (readonly Item[])[]
}

const { groupItems, headingOf } = (await import('../../src/gallery/groups.js' as string)) as {
  groupItems(items: readonly Item[], grouping: string, onlyLabel: string): readonly Section[]
  headingOf(name: unknown, items: readonly Item[], grouping: string): { title: string; details: string }
}

const NOON = Date.parse('2026-11-22T12:00:00Z')

const item = (order: number, run: Partial<Item['run']> = {}, part = 1): Item => ({
  run: { prompt: `prompt ${order}`, model: 'acme/still-1', time: NOON, labels: [], ...run },
  order,
  part,
})
const orders = (items: readonly Item[]) => items.map(({ order }) => order)

describe('sections', () => {
  it('are the labels, sorted, and last the runs without one', () => {
    const items = [
      item(0),
      item(1, { labels: ['spring', 'web', 'web'] }),
      item(2, { labels: ['web'] }),
      item(3, { labels: ['autumn'] }),
    ]
    const shown = (onlyLabel: string) =>
      groupItems(items.slice(onlyLabel === '' ? 0 : 1, onlyLabel === '' ? 4 : 3), 'label', onlyLabel).map(
        (section) => [section.name, orders(section.items)],
      )
    expect(shown('')).toEqual([
      ['autumn', [3]],
      ['spring', [1]],
      ['web', [1, 2]],
      ['', [0]],
    ])
    // A filter by label shows no section of the other labels that these runs have.
    expect(shown('web')).toEqual([['web', [1, 2]]])
  })

  it('are days, newest first, or one without a name', () => {
    const day = 24 * 3_600_000
    const items = [item(0), item(1, { time: NOON - 60_000 }), item(2, { time: NOON - day })]
    expect(groupItems(items, 'day', '').map((section) => orders(section.items))).toEqual([[0, 1], [2]])
    expect(groupItems(items, '', '').map(({ name }) => name)).toEqual([undefined])
  })
})

it('variants are runs of one model and prompt, in the order of creation, where the newest is', () => {
  const fox = { prompt: 'a fox' }
  const items = [
    item(0),
    item(1, fox),
    item(1, fox, 2),
    item(2, { ...fox, model: 'acme/still-2' }),
    item(3, fox),
    item(4, { prompt: '' }),
    item(5, { prompt: '' }),
  ]
  const units = groupItems(items, '', '')[0]?.units.map((unit) =>
    unit.map(({ order, part }) => [order, part]),
  )
  expect(units).toEqual([
    [[0, 1]],
    [
      [3, 1],
      [1, 1],
      [1, 2],
    ],
    [[2, 1]],
    [[4, 1]],
    [[5, 1]],
  ])
})

describe('a heading', () => {
  const usd = (millionths: number) => ({ estimate: { millionths, currency: 'USD' } })
  const twice = item(2, usd(400_000))

  it.each<[string, string, readonly Item[]]>([
    ['1 result', 'no price', [item(0)]],
    ['2 results · Estimate: 0.4 USD', 'two outputs of one run', [twice, { ...twice, part: 2 }]],
    ['2 results · Estimate: 0.4 USD (1 run without a price)', 'a missing price', [item(0), twice]],
    [
      '3 results · Estimate: 0.3 USD + 1 credit',
      'two currencies, exact to six decimals',
      [
        item(0, usd(100_000)),
        item(1, usd(200_000)),
        item(2, { estimate: { millionths: 1_000_000, currency: 'credits' } }),
      ],
    ],
  ])('says %j: %s', (details, _why, items) =>
    expect(headingOf('web', items, 'label')).toEqual({ title: 'web', details }),
  )

  it('names the runs without a label', () => expect(headingOf('', [], 'label').title).toBe('No label'))
})
