/** The parameters of a model that contain media, and the sources in an input. */
import { MEDIA_TYPES, type MediaType } from './media.js'
import type { ModelInput, ModelSchema } from './models.js'
import { isObject } from './parse.js'

/** The parameters that contain media, as http(s) or data: URLs, by name. Text in any other parameter is plain text. */
export type MediaParameters = ReadonlyMap<string, MediaType>

/** The parameter for reference images in the inputs of all models. */
export const IMAGE_URLS = 'image_urls'

/** What a name or a description says that a file is. The first that matches counts: `mask_video_url` is a video. */
const WORDS: readonly (readonly [MediaType, RegExp])[] = [
  ['file', /(?<![a-z])(loras?|weights?|zip|archive|tar|font|pdf|mesh|glb|webhook|callback)(?![a-z])/i],
  ['video', /(?<![a-z])(videos?|films?|footage|clip)(?![a-z])/i],
  ['audio', /(?<![a-z])(audios?|voice|speech|music|sound|song|vocals?)(?![a-z])/i],
  ['image', /image|img|photo|picture|frame|face|portrait|avatar|sketch|mask/i],
]

const mediaIn = (text: unknown): MediaType | undefined =>
  WORDS.find(([, pattern]) => pattern.test(String(text)))?.[0]

/**
 * Returns the media that a parameter takes, by its schema: `media` of rushes, `x-cog-accept` of Replicate, `_fal_ui_field`
 * and `ui.field` of fal, `format: uri`, or its name (`end_image_url`, `mask`). Undefined for plain text, which a prompt always
 * is: a document from a service must not make a file of its words.
 */
export function mediaOfParameter(
  name: string,
  schema: Readonly<Record<string, unknown>>,
): MediaType | undefined {
  const { type, items, media } = schema
  const inner = type === 'array' ? items : schema
  if (
    name === 'prompt' ||
    !isObject(inner) ||
    inner.type !== 'string' ||
    inner.enum !== undefined ||
    media === false
  )
    return undefined
  const { 'x-cog-accept': accept, format, _fal_ui_field: field, ui } = { ...schema, ...inner }
  const named = MEDIA_TYPES.find((each) => [media, field, isObject(ui) && ui.field].includes(each))
  if (named !== undefined) return named
  if (typeof accept === 'string') return MEDIA_TYPES.find((each) => accept.startsWith(`${each}/`)) ?? 'file'
  const words = name.replace(/([a-z\d])([A-Z])/g, '$1_$2').toLowerCase()
  if (/(^|_)(image|mask|video|audio)s?$/.test(words)) return mediaIn(words)
  if (format !== 'uri' && !/_urls?$/.test(words)) return undefined
  return mediaIn(words) ?? mediaIn(schema.description) ?? 'file'
}

/** The media parameters of a model in the order of its schema. Undefined: a model without a document. */
export const mediaParameters = (schema: ModelSchema | undefined): MediaParameters =>
  new Map(
    schema === undefined
      ? [[IMAGE_URLS, 'image']]
      : Object.entries(schema.properties).flatMap(([name, each]) => {
          const media = mediaOfParameter(name, { ...each })
          return media === undefined ? [] : [[name, media] as const]
        }),
  )

/** Returns the parameter that `-i` fills. */
export const firstPicture = (schema: ModelSchema): string | undefined => pictureAmong(mediaParameters(schema))

/** Returns `image_urls`, else the first parameter for an image, which a mask is not. */
export function pictureAmong(media: Iterable<readonly [string, MediaType | undefined]>): string | undefined {
  const pictures = [...media].flatMap(([name, type]) =>
    type === 'image' && !/mask/i.test(name) ? [name] : [],
  )
  return pictures.find((name) => name === IMAGE_URLS) ?? pictures[0]
}

/** One source in a media parameter. */
export interface MediaPlace {
  readonly parameter: string
  /** Index in its list. Undefined for a parameter that takes one source. */
  readonly entry?: number
}

export interface MediaSource extends MediaPlace {
  readonly value: unknown
}

/** Returns the sources in the media parameters of an input, in their order. */
export const mediaSources = (input: ModelInput, names: Iterable<string>): readonly MediaSource[] =>
  [...names].flatMap((parameter): readonly MediaSource[] => {
    const value = Object.hasOwn(input, parameter) ? input[parameter] : undefined
    if (Array.isArray(value)) return value.map((each: unknown, entry) => ({ parameter, entry, value: each }))
    return value === undefined ? [] : [{ parameter, value }]
  })

/** Returns the input with other values in these places. A parameter that the input does not have stays out. */
export function withMedia(input: ModelInput, sources: readonly MediaSource[]): ModelInput {
  const changed: Record<string, unknown> = { ...input }
  for (const { parameter, entry, value } of sources) {
    if (!Object.hasOwn(input, parameter)) continue
    const { [parameter]: list } = changed
    if (entry === undefined || !Array.isArray(list)) changed[parameter] = value
    else {
      const own: unknown[] = list === input[parameter] ? [...list] : list
      own[entry] = value
      changed[parameter] = own
    }
  }
  return changed
}

/** `image_urls/3` of a place, as in `InputProblem`. */
export const placeText = ({ parameter, entry }: MediaPlace): string =>
  entry === undefined ? parameter : `${parameter}/${entry}`
