/** Fragments, queries and paths of the console's page. */
import { describe, expect, it } from 'vitest'
import { entriesQuery, readFilter } from '../../src/console/credits/ledger.js'
import { linkTo, PAGES, parseRoute, relativePath, withQuery } from '../../src/console/routes.js'
import { CONSOLE_PATHS } from '../../src/protocol/console.js'

describe('a fragment', () => {
  it.each([
    ['', { page: 'runs' }],
    ['#', { page: 'runs' }],
    ['#/', { page: 'runs' }],
    ['#/runs', { page: 'runs' }],
    ['#/runs/run_7k2m9x', { page: 'runs', param: 'run_7k2m9x' }],
    ['#/runs/a%2Fb', { page: 'runs', param: 'a/b' }],
    ['#/runs/%', { page: 'runs', param: '%' }],
    ['#/runs?status=failed&search=a%26b', { page: 'runs', query: { status: 'failed', search: 'a&b' } }],
    ['#/credits?from=2026-01-31?', { page: 'credits', query: { from: '2026-01-31?' } }],
    ['#/link/abc', { page: 'link', param: 'abc' }],
    ['#/keys/3', { page: undefined, param: '3' }],
    ['#/runs/a/b', { page: undefined, param: 'a' }],
    ['#/nowhere', { page: undefined }],
    ['#/Runs', { page: undefined }],
  ])('%s', (fragment, { page, param, query = {} }: Record<string, unknown>) =>
    expect(parseRoute(fragment)).toEqual({ page, param, query }),
  )

  it('parses back to the values that its link was built from', () => {
    for (const page of PAGES) expect(parseRoute(linkTo(page)).page).toBe(page)
    expect(parseRoute(linkTo('runs', { param: 'a/b?c#d' })).param).toBe('a/b?c#d')
    expect(parseRoute(linkTo('runs', { query: { search: '"ü & ?#', key: 3 } })).query).toEqual({
      search: '"ü & ?#',
      key: '3',
    })
  })
})

it.each([
  ['/api/console/runs', {}, 'api/console/runs'],
  [CONSOLE_PATHS.run, { id: 'run_1' }, 'api/console/runs/run_1'],
  [CONSOLE_PATHS.run, { id: '../x?y' }, 'api/console/runs/..%2Fx%3Fy'],
])('fills the parameters of the path %s', (path, params, expected) =>
  expect(relativePath(path, params)).toBe(expected),
)

it.each([
  [{}, 'a'],
  [{ b: undefined, c: null, d: '' }, 'a'],
  [{ b: 0, c: 'x y' }, 'a?b=0&c=x+y'],
])('writes the query %j', (query, expected) => expect(withQuery('a', query)).toBe(expected))

it.each([
  [{}, {}],
  [{ kind: 'refund', key: '3', from: '2026-01-01', to: '2026-01-31' }, undefined],
  [{ kind: 'gift', key: 'console', from: 'today', to: '2026-13-01' }, {}],
  [{ kind: 'toString', key: '0' }, {}],
  [{ kind: 'charge', other: 'x' }, { kind: 'charge' }],
])('reads the ledger filter %j', (query: Record<string, string>, expected) =>
  expect(entriesQuery(readFilter(query))).toEqual(expected ?? query),
)
