import { describe, expect, test } from 'vitest'
import { RushesError } from '../../../src/errors.js'
import { describeEffect } from '../../../src/service/faults/fault.js'
import { parseFault } from '../../../src/service/faults/grammar.js'

const always = Number.POSITIVE_INFINITY
const status = (code: number, more: object = {}) => ({
  what: 'status',
  status: code,
  code: undefined,
  headers: {},
  acted: false,
  ...more,
})

describe('a fault', () => {
  test.each([
    ['create:429:RATE_LIMITED:2', 'create', status(429, { code: 'RATE_LIMITED' }), 2],
    ['status:500::1', 'status', status(500), 1],
    ['output:reset::1', 'output', { what: 'reset', within: 'start', byte: 0 }, 1],
    ['create:lose::1', 'create', { what: 'lose' }, 1],
    ['latency:800ms', 'any', { what: 'delay', ms: 800 }, always],
    ['create:lose', 'create', { what: 'lose' }, always],
    [' create:lose: :1 '.replaceAll(' ', ''), 'create', { what: 'lose' }, 1],
    ['create:429:', 'create', status(429), always],
    [
      'create:429:RATE_LIMITED;retry-after=3:1',
      'create',
      status(429, { code: 'RATE_LIMITED', headers: { 'retry-after': '3' } }),
      1,
    ],
    ['create:503:;Retry-After=3', 'create', status(503, { headers: { 'retry-after': '3' } }), always],
    ['create:500:acted:1', 'create', status(500, { acted: true }), 1],
    ['create:402:my_code;acted', 'create', status(402, { code: 'my_code', acted: true }), always],
    ['output:reset:1000:2', 'output', { what: 'reset', within: 'body', byte: 1000 }, 2],
    ['output:reset:head=12:1', 'output', { what: 'reset', within: 'head', byte: 12 }, 1],
    ['create:reset:upload=64kB:1', 'create', { what: 'reset', within: 'upload', byte: 64_000 }, 1],
    ['any:close', 'any', { what: 'close' }, always],
    ['status:stall', 'status', { what: 'stall', byte: undefined }, always],
    ['status:stall:0', 'status', { what: 'stall', byte: 0 }, always],
    ['output:truncate::3', 'output', { what: 'truncate', byte: undefined }, 3],
    ['output:truncate:1KiB', 'output', { what: 'truncate', byte: 1024 }, always],
    ['output:corrupt', 'output', { what: 'corrupt', byte: 0 }, always],
    ['create:nonsense', 'create', { what: 'nonsense', kind: 'html' }, always],
    ['status:nonsense:list:1', 'status', { what: 'nonsense', kind: 'list' }, 1],
    ['output:delay:1.5s', 'output', { what: 'delay', ms: 1500 }, always],
    ['output:slow:50kB', 'output', { what: 'slow', bytesPerSecond: 50_000 }, always],
    ['create:redirect:/elsewhere:1', 'create', { what: 'redirect', url: '/elsewhere' }, 1],
    ['output:redirect:http://127.0.0.1:9', 'output', { what: 'redirect', url: 'http://127.0.0.1:9' }, always],
    ['output:redirect:http://[::1]:9/a:2', 'output', { what: 'redirect', url: 'http://[::1]:9/a' }, 2],
    ['any:redirect:https://x.example/:1', 'any', { what: 'redirect', url: 'https://x.example/' }, 1],
    ['output:expire', 'output', { what: 'expire', status: 410 }, always],
    ['output:expire:403:1', 'output', { what: 'expire', status: 403 }, 1],
    ['run:fail:out of paint:1', 'run', { what: 'fail', message: 'out of paint' }, 1],
    ['run:never', 'run', { what: 'never' }, always],
  ] as const)('%s', (spec, where, effect, count) => {
    expect(parseFault(spec)).toEqual({ where, effect, count })
  })

  test.each([
    ['', /Missing place. Use one of create, status, output, any, run, latency/],
    ['craete:lose', /Unknown place "craete".*Did you mean "create"\?/],
    ['create', /Missing fault. Use one of <status>, reset, lose/],
    ['create:lsoe::1', /Unknown fault "lsoe".*Did you mean "lose"\?/],
    ['run:fial', /Unknown fault "fial". Use one of fail, never\. Did you mean "fail"/],
    ['status:never', /"never" works with run, not with status/],
    ['create:expire', /"expire" works with output, not with create/],
    ['run:500', /Unknown fault "500"/],
    ['create:99', /"99" is not a valid HTTP status/],
    ['create:600', /"600" is not a valid HTTP status/],
    ['create:<status>', /"<status>" is not a valid HTTP status/],
    ['create:lose:1', /"lose" takes no detail/],
    ['create:lose::0', /"0" is not a valid count/],
    ['create:lose::once', /"once" is not a valid count/],
    ['create:429:RATE_LIMITED:2:3', /at most four parts/],
    ['create:429:A;retry after=3', /"retry after=3" is not a valid option/],
    ['output:reset:middle', /"middle" is not a valid size/],
    ['output:reset:tail=3', /"tail=3" is not a valid size/],
    ['output:slow', /"" is not a valid size/],
    ['output:slow:0', /must be above 0/],
    ['latency', /"" is not a valid duration/],
    ['latency:800', /"800" is not a valid duration/],
    ['status:nonsense:xml', /Unknown detail "xml". Use one of html, text/],
    ['output:expire:500', /Unknown detail "500". Use one of 403, 404, 410/],
    ['create:redirect:ftp://x', /neither an http or https URL nor a path/],
    ['create:redirect', /neither an http or https URL nor a path/],
  ])('%s is refused, quoting it whole', (spec, message) => {
    const parsing = () => parseFault(spec)
    expect(parsing).toThrow(RushesError)
    expect(parsing).toThrow(message)
    expect(parsing).toThrow(`--fault ${spec}: `)
    expect(parsing).toThrow(expect.objectContaining({ code: 'usage', exitCode: 2 }))
  })
})

test.each([
  ['create:429:RATE_LIMITED:2', 'create answered 429 RATE_LIMITED'],
  ['create:500:acted', 'create answered 500 after the service acted'],
  ['create:lose', 'create lost its response after the service acted'],
  ['output:reset:1', 'output was reset after 1 byte of the response body'],
  ['output:truncate', 'output was cut short in the middle'],
])('%s is told as "%s"', (spec, words) => {
  const { where, effect } = parseFault(spec)
  expect(describeEffect(where, effect)).toBe(words)
})
