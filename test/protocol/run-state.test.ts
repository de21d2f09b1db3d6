import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRunUrl, findRunId, isRunId, runUrl } from '../../src/protocol/id.js'

import { parseErrorBody, parseJson, parseRun } from '../../src/protocol/parse.js'
import { FAILURE_STATUSES, LOCAL_STATUSES, phaseOf, progressOf } from '../../src/protocol/run-state.js'
import { anyCharacter } from '../support/any-character.js'
import { runState } from '../support/runs.js'

it('the routes keep the prefix of the base URL', () => {
  expect(createRunUrl('https://x.test/a').href).toBe('https://x.test/a/api/v1/runs')
  expect(runUrl('https://x.test/a', 'r1').href).toBe('https://x.test/a/api/v1/runs/r1')
})

it('the routes keep every id in one segment, from which it can be read again', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 300 }).filter(isRunId), (id) => {
      const url = runUrl('https://x.test', id)
      expect(url.pathname.split('/')).toHaveLength(5)
      expect(url.search + url.hash).toBe('')
      expect(decodeURIComponent(url.pathname.split('/').at(-1) ?? '')).toBe(id)
      expect(findRunId({ body: {}, location: url.href })).toBe(id)
    }),
  )
})

it.each<[service: unknown, text: string]>([
  [{ progress: 0.429 }, '42 %'],
  [{ progress: 0, queue_position: 7 }, '0 %'],
  [{ queue_position: 12_654 }, '12,654 before it'],
  [{ queue_position: 0 }, ''],
  [{ progress: 42 }, ''],
  [{ progress: '42 %', queue_position: null }, ''],
  [null, ''],
])('the progress of a run with %j is "%s"', (service, text) => {
  expect(progressOf(runState({ phase: 'running', service }))).toBe(text)
  expect(progressOf(runState({ phase: 'failed', service }))).toBe('')
})

describe('an id', () => {
  it.each([
    ['r1', true],
    ['..a', true],
    ['x'.repeat(256), true],
    ['x'.repeat(257), false],
    ['..', false],
    ['a\u0000', false],
    ['a\ud800', false],
  ])('may be %j: %s', (text, is) => {
    expect(isRunId(text)).toBe(is)
  })

  const ENVELOPES = ['%', '{"run": %}', '{"data": %}', '{"result": %}']
  it.each<[string, string | undefined]>([
    ...ENVELOPES.flatMap((envelope) =>
      ['id', 'run_id', 'runId'].map((name): [string, string] => [
        envelope.replace('%', `{"${name}": "a"}`),
        'a',
      ]),
    ),
    ['{"id": 0}', '0'],
    ['{"id": ["a"]}', undefined],
    // An envelope in an envelope.
    ['{"data": {"run": {"id": "a"}}}', undefined],
    // An invalid id is passed over, and an envelope comes after the fields beside it.
    ['{"id": "", "run_id": "a"}', 'a'],
    ['{"run": {"id": "b"}, "runId": "a"}', 'a'],
  ])('in a body: %s: %s', (body, id) => {
    expect(findRunId({ body: JSON.parse(body), location: undefined })).toBe(id)
  })

  it('is not what every object inherits', () => {
    expect(findRunId({ body: Object.create({ id: 'a' }), location: undefined })).toBeUndefined()
  })

  it.each([
    ['/api/v1/runs/a', 'a'],
    ['https://x.test/p/api/v1/runs/a%20b?x#y', 'a b'],
    ['/api/v1/runs', undefined],
    ['/api/v1/runs/runs', 'runs'],
    ['/%ff', undefined],
    ['http://[', undefined],
  ])('in Location: %s', (location, id) => {
    expect(findRunId({ body: undefined, location })).toBe(id)
  })
})

it.each([
  ['{"error":{"code":"a","message":"b"}}', 'a', 'b'],
  ['{"error":{"code":1,"message":" "}}', undefined, undefined],
  ['{"error":"b"}', undefined, 'b'],
  ['{"code":"a","message":"b"}', 'a', 'b'],
  ['null', undefined, undefined],
])('an answer of an error: %s', (body, code, message) => {
  expect(parseErrorBody(body)).toEqual({ code, message })
})

it('an answer that is no JSON is not one that is empty', () => {
  expect(parseJson('\uFEFF{"id":1}')).toEqual({ ok: true, value: { id: 1 } })
  expect(parseJson(' \n')).toEqual({ ok: false, wrong: 'the body is empty' })
  expect(parseJson('<p>')).toEqual({ ok: false, wrong: 'the body is not JSON' })
  expect(parseJson('null')).toEqual({ ok: true, value: null })
})

describe('a run', () => {
  const runOf = (value: unknown) => {
    const run = parseRun(value, 'r1')
    return run.ok ? run.value : run.wrong
  }

  it('has its times, and the object of the service untouched', () => {
    const service = { status: 'queued', created_at: '2026-01-01T01:00:00+01:00', finished_at: 'soon', x: [1] }
    const times = { createdAt: '2026-01-01T00:00:00.000Z', finishedAt: undefined }
    expect(runOf(service)).toMatchObject({ id: 'r1', phase: 'running', urls: [], ...times, service })
  })

  it.each(['-271821-04-20T00:00:00Z', '+010000-01-01T00:00:00Z'])(
    'has no time of a year that a time in JSON cannot have: %s',
    (finished_at) => {
      expect(runOf({ status: 'failed', finished_at })).toMatchObject({ finishedAt: undefined })
    },
  )

  it.each([{}, { status: '' }, { status: 3 }, [{ status: 'queued' }], null])('rejects %j', (value) => {
    expect(runOf(value)).toMatch(/^the (body is not a JSON object|run has no status)$/)
  })

  it.each([
    ['"error": {"message": "too dark", "code": "dark"}', 'too dark'],
    ['"error": {"code": "dark"}', 'dark'],
    ['"error": "too dark"', 'too dark'],
    ['"message": "too dark"', 'too dark'],
    ['"failure_reason": "too dark"', 'too dark'],
    ['"error": 5, "message": " "', undefined],
  ])('that failed is explained by %s, and has no URLs', (more, failure) => {
    const text = `{"status": "failed", "output": {"urls": ["https://cdn.test/1.png"]}, ${more}}`
    expect(runOf(JSON.parse(text))).toMatchObject({ failure, urls: [] })
  })

  it.each([
    '"output": {}',
    '"output": {"urls": []}',
    '"output": {"urls": "https://cdn.test/1.png"}',
    '"output": {"urls": ["ftp://cdn.test/1.png"]}',
    '"output": {"urls": ["https://cdn.test/1.png", "/1.png"]}',
  ])('that succeeded has no URLs, and the reason, with %s', (output) => {
    const withoutUrls = expect.stringMatching(/^output\.urls /)
    expect(runOf(JSON.parse(`{"status": "succeeded", ${output}}`))).toMatchObject({ urls: [], withoutUrls })
  })
})

it('the statuses mean failure in any case and spacing: exactly these', () => {
  expect(FAILURE_STATUSES).toEqual(
    'failed failure error errored canceled cancelled aborted expired rejected timeout timed_out'.split(' '),
  )
  for (const word of FAILURE_STATUSES)
    for (const written of [word, word.toUpperCase(), ` ${word} `]) expect(phaseOf(written)).toBe('failed')
})

it.each([
  [' Succeeded ', 'succeeded'],
  ...['queued', 'IN_PROGRESS', 'success', 'done', 'moderated', 'fail', '  '].map((each) => [each, 'running']),
  ['MODERATED', 'failed', 'moderated'],
  ['blocked', 'failed', ' Blocked '],
])('the statuses %j mean %s (further failures: %s)', (status = '', phase, further) => {
  expect(phaseOf(status, further === undefined ? [] : [further])).toBe(phase)
})

it('the statuses of the local service are understood by the client', () => {
  const phases = LOCAL_STATUSES.map((status) => phaseOf(status))
  expect(phases).toEqual(['running', 'running', 'succeeded', 'failed', 'failed'])
})
