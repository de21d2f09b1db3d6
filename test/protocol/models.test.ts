import { describe, expect, it } from 'vitest'
import {
  builtInSchema,
  findInexact,
  IMAGE_INPUT,
  isModelName,
  KINDS,
  MODEL_INPUTS,
  VIDEO_INPUT,
} from '../../src/protocol/models.js'
import { inputProblems, isKind, unknownFields } from '../../src/protocol/validate.js'

const rowsOf = ({ properties, required }: typeof VIDEO_INPUT | typeof IMAGE_INPUT) =>
  Object.entries(properties).map(([name, schema]) => [
    name,
    schema.type === 'array' ? 'string[]' : schema.type,
    (required as readonly string[]).includes(name) ? 'Required' : 'Optional',
    'enum' in schema ? schema.enum.join(', ') : 'maxItems' in schema ? `up to ${schema.maxItems}` : '',
  ])

describe('the inputs', () => {
  it('of the video model are those of the interface', () => {
    expect(rowsOf(VIDEO_INPUT)).toEqual([
      ['prompt', 'string', 'Required', ''],
      ['aspect_ratio', 'string', 'Optional', '16:9, 9:16, 4:3, 3:4, 1:1, 21:9'],
      ['resolution', 'string', 'Optional', '720p, 1080p'],
      ['duration', 'string', 'Optional', '5, 10'],
      ['image_urls', 'string[]', 'Optional', ''],
    ])
  })

  it('of the image model are those of the interface', () => {
    expect(rowsOf(IMAGE_INPUT)).toEqual([
      ['prompt', 'string', 'Required', ''],
      ['aspect_ratio', 'string', 'Optional', '1:1, 2:3, 3:2, 3:4, 4:3, 9:16, 16:9, 21:9'],
      ['quality', 'string', 'Optional', 'basic, high'],
      ['image_urls', 'string[]', 'Optional', 'up to 14'],
    ])
  })

  it('have the name of their kind as a title', () => {
    expect(KINDS).toEqual(['video', 'image'])
    expect([isKind('video'), isKind('Video'), isKind('toString')]).toEqual([true, false, false])
    for (const kind of KINDS) expect(MODEL_INPUTS[kind].title).toBe(kind)
  })

  it.each([
    ['acme/still-1', true],
    ['acme/a/b', true],
    ['/still-1', false],
    ['acme/', false],
    ['acme/still 1', false],
  ])('a model name: %j → %s', (name, is) => {
    expect(isModelName(name)).toBe(is)
  })
})

const said = (kind: 'video' | 'image', input: object) =>
  inputProblems(builtInSchema(kind), input as Record<string, unknown>).map(
    ({ parameter, message }) => `${parameter} ${message}`,
  )

// Every allowed value: batch/manifest-schema.test.ts.
it('an input may have an empty prompt, unknown parameters, and as many references as its kind allows', () => {
  for (const kind of KINDS) expect(said(kind, { prompt: '' })).toEqual([])
  expect(said('image', { prompt: 'x', image_urls: Array(14).fill('u'), seed: 1 })).toEqual([])
  expect(said('video', { prompt: 'x', image_urls: Array(99).fill('u') })).toEqual([])
})

it('an input has one problem for each wrong parameter', () => {
  expect(said('video', {})).toEqual(['prompt is missing'])
  expect(
    said('video', { prompt: 1, aspect_ratio: '16x9', resolution: '1080', duration: 5, image_urls: 'u' }),
  ).toEqual([
    'prompt must be text, not 1',
    'aspect_ratio must be one of 16:9, 9:16, 4:3, 3:4, 1:1, 21:9, not "16x9" (did you mean "16:9"?)',
    'resolution must be one of 720p, 1080p, not "1080" (did you mean "1080p"?)',
    'duration must be one of the strings 5, 10, not 5 (did you mean "5"?)',
    'image_urls must be a list of strings, not "u"',
  ])
  expect(said('image', { prompt: 'x', image_urls: ['u', 2, null], quality: { toString: 1 } })).toEqual([
    'quality must be one of basic, high, not {"toString":1}',
    'image_urls/1 must be text, not 2',
    'image_urls/2 must be text, not null',
  ])
  expect(said('image', { prompt: 'x', image_urls: Array(15).fill('u'), quality: 'x'.repeat(500) })).toEqual([
    `quality must be one of basic, high, not "${'x'.repeat(98)}…`,
    'image_urls takes at most 14, not 15',
  ])
})

it('an input with unknown fields names the nearest known one', () => {
  expect(
    unknownFields(builtInSchema('video'), { prompt: 'x', aspectratio: '1:1', seed: 1, Durations: '5' }),
  ).toEqual([
    { name: 'aspectratio', nearest: 'aspect_ratio' },
    { name: 'seed', nearest: undefined },
    { name: 'Durations', nearest: 'duration' },
  ])
})

it.each<[unknown, readonly string[] | undefined]>([
  [{ seed: 2 ** 53 - 1, scale: 0.1, deep: [null, 'x', { n: -1e300 / 3e300 }] }, undefined],
  [{ input: { list: [1, -(2 ** 60)] } }, ['input', 'list', '1']],
  [{ seed: JSON.parse('1e400') }, ['seed']],
])('finds the number that a parser may have changed: %j at %j', (value, path) => {
  expect(findInexact(value)).toEqual(path)
})
