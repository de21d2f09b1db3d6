import { expect, it } from 'vitest'
import { parse } from 'yaml'
import {
  firstPicture,
  mediaOfParameter,
  mediaParameters,
  mediaSources,
  withMedia,
} from '../../src/protocol/media-parameters.js'
import { readModelDocument } from '../../src/protocol/model-document.js'
import { builtInSchema, type ModelSchema } from '../../src/protocol/models.js'
import { inputProblems } from '../../src/protocol/validate.js'

/** The schema of a model with these properties, as a model file has them. */
function schemaOf(properties: string): ModelSchema {
  const value = { name: 'a/b', kind: 'image', input: { type: 'object', properties: parse(properties) } }
  return readModelDocument(value, (_, message) => expect.unreachable(message))?.input as ModelSchema
}

it.each([
  ['imageUrl', {}, 'image'],
  ['input_image', {}, 'image'],
  ['mask', {}, 'image'],
  ['video', {}, 'video'],
  ['mask_video_url', {}, 'video'],
  ['voice_url', {}, 'audio'],
  ['callback_url', {}, 'file'],
  ['image', { enum: ['a', 'b'] }, undefined],
  ['image', { media: false }, undefined],
  ['image', { type: 'boolean' }, undefined],
  ['picture', {}, undefined],
  ['picture', { media: 'image' }, 'image'],
  ['prompt', { media: 'file' }, undefined],
] as const)('%s with %j takes %s', (name, more, media) => {
  expect(mediaOfParameter(name, { type: 'string', ...more })).toBe(media)
})

it('knows the built-in parameter, and lists of files', () => {
  expect([...mediaParameters(builtInSchema('video'))]).toEqual([['image_urls', 'image']])
  const refs =
    '{ prompt: { type: string }, refs: { type: array, items: { type: string, _fal_ui_field: image } } }'
  expect([...mediaParameters(schemaOf(refs))]).toEqual([['refs', 'image']])
})

it.each([
  ['mask_url: { type: string }, end_image: { type: string }, image: { type: string }', 'end_image'],
  ['image: { type: string }, image_urls: { type: array, items: { type: string } }', 'image_urls'],
  ['mask: { type: string }, audio_url: { type: string }', undefined],
])('fills with -i the first picture, which is never a mask, or image_urls: %s: %s', (properties, first) => {
  expect(firstPicture(schemaOf(`{ ${properties} }`))).toBe(first)
})

it('changes only the sources that an input has', () => {
  const input = { image_urls: ['a', 'b'], mask: 'c', prompt: 'd' }
  const sources = mediaSources(input, ['image_urls', 'mask', 'end_image'])
  expect(sources.map(({ value }) => value)).toEqual(['a', 'b', 'c'])
  const changed = sources.map((source) => ({ ...source, value: `${source.value}!` }))
  expect(withMedia(input, [...changed, { parameter: 'end_image', value: 'x' }])).toEqual({
    image_urls: ['a!', 'b!'],
    mask: 'c!',
    prompt: 'd',
  })
  expect(input.image_urls).toEqual(['a', 'b'])
})

const takesUrl = (given: string): string =>
  `has the field "image_url", which takes an http(s) or data: URL, not "${given}"`

it.each([
  [{ image_size: { height: 'x', colour: 1 } }, undefined],
  [{ image_size: 'square' }, undefined],
  [
    { elements: [{ image_url: 'https://a.example/a.png' }, { image_url: 'a.png' }] },
    `elements/1 ${takesUrl('a.png')}`,
  ],
  [{ elements: [{ more: [{ image_url: 'row:start' }] }] }, `elements/0/0 ${takesUrl('row:start')}`],
  [
    { elements: { image_url: ['data:image/png;base64,AA', 'run:run_1'] } },
    `elements ${takesUrl('run:run_1')}`,
  ],
  [{ elements: [{ image_url: '', page_url: 'b', note: 'c.png' }] }, undefined],
  [{ images: ['a.png'] }, 'images takes an http(s) or data: URL, not "a.png"'],
])('checks the media in the fields of an object: %j', (input, expected) => {
  const schema = schemaOf(`
    image_size: { anyOf: [{ type: string }, { type: object, properties: { width: { type: integer }, height: { type: integer } } }] }
    elements:
      type: array
      items: { type: object, properties: { image_url: { type: string }, page_url: { type: string, media: false } } }
    images: { type: array }
    loras: { type: array, items: { type: object, properties: { path: { type: string } } } }`)
  expect(inputProblems(schema, input).map(({ parameter, message }) => `${parameter} ${message}`)).toEqual(
    [expected].flatMap((each) => each ?? []),
  )
})

it('does not measure a data: URL by the limit for URLs', () => {
  const schema = schemaOf('image_url: { type: string, maxLength: 20 }')
  expect(inputProblems(schema, { image_url: `data:image/png;base64,${'A'.repeat(50)}` })).toEqual([])
  expect(inputProblems(schema, { image_url: `https://a.example/${'a'.repeat(50)}` })).toHaveLength(1)
})
