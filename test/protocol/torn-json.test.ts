/** What can be used of JSON that broke off. */
import { describe, expect, it } from 'vitest'
import { parseTornJson } from '../../src/protocol/torn-json.js'

describe('JSON that broke off', () => {
  it.each([
    ['after a string', '{"id":"a"', { id: 'a' }],
    ['in a string', '{"id":"a', {}],
    ['after an escaped quote', '{"id":"a\\"', {}],
    ['in an escape', '{"id":"a\\u00', {}],
    ['after a number that may go on', '{"id":12', {}],
    ['after a whole number', '{"id":12,', { id: 12 }],
    ['in a name', '{"id":"a","na', { id: 'a' }],
    ['below an object', '{"run":{"id":"a","x":"b', { run: { id: 'a' } }],
    ['after an object', '{"run":{"x":{}},"id":"a","y":{', { run: { x: {} }, id: 'a', y: {} }],
    ['in a list', '{"list":[{"id":"x"},"y', { list: [{ id: 'x' }] }],
    ['after a list', '{"list":[{"id":"x"}],"id":"a",', { list: [{ id: 'x' }], id: 'a' }],
    [
      'after a name that objects have anyway',
      '{"__proto__":{"id":"x"},"id":"a",',
      { ['__proto__']: { id: 'x' }, id: 'a' },
    ],
    ['after a byte order mark', '\uFEFF{"id":"a",', { id: 'a' }],
    ['at once', '', undefined],
    ['nowhere', '{"id":"a"}', { id: 'a' }],
  ])('%s', (_, text, expected) => {
    expect(JSON.stringify(parseTornJson(text))).toBe(JSON.stringify(expected))
  })

  it.each([
    ['a page', '<p data="{" id="a"', undefined],
    ['a comment', '{/* */"id":"a",', undefined],
    ['text after the value', '{"id":"a"}, "id":"b"', { id: 'a' }],
    ['marks in a string', '{"id":"a","message":"{ ] , \\" }', { id: 'a' }],
    ['a line end in a string', '{"id":"a","message":"x\ny","n":', { id: 'a', message: 'x y' }],
  ])('is used unless it is no JSON: %s', (_, text, expected) => {
    expect(JSON.stringify(parseTornJson(text))).toBe(JSON.stringify(expected))
  })

  it('has as many levels as it likes', () => {
    expect(parseTornJson(`{"id":"a","deep":${'['.repeat(1_000_000)}`)).toMatchObject({ id: 'a' })
  })

  it('has its first id, wherever the text breaks off', () => {
    const text = JSON.stringify({ data: { id: 'a"b\\', runs: [{ id: 'x' }] }, status: 'é🦊', n: 1 })
    const end = text.indexOf('","runs') + 1
    for (let length = 0; length <= text.length; length++) {
      const body = parseTornJson(text.slice(0, length)) as { data?: { id?: string } } | undefined
      expect(body?.data?.id).toBe(length >= end ? 'a"b\\' : undefined)
    }
  })
})
