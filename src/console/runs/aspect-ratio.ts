/** How an output is shown, by its content type. Pure. */
import type { RunOutput } from '../../protocol/console.js'

export type MediaType = 'image' | 'video' | 'audio' | 'file'

/** A browser shows these and runs nothing in them. Others are only downloaded: they would run as a page of the service. */
const IMAGES: readonly string[] = ['png', 'jpeg', 'webp', 'gif', 'avif', 'bmp']

export function mediaTypeOf({ content_type }: Pick<RunOutput, 'content_type'>): MediaType {
  const [type = '', subtype = ''] = content_type.toLowerCase().split(';')[0]?.trim().split('/') ?? []
  if (type === 'image') return IMAGES.includes(subtype) ? 'image' : 'file'
  return type === 'video' || type === 'audio' ? type : 'file'
}

/** `16:9` as a number; 1 for everything else. */
export function ratioOf(text: unknown): number {
  const [, width, height] = /^(\d{1,5}):(\d{1,5})$/.exec(typeof text === 'string' ? text : '') ?? []
  const ratio = Number(width) / Number(height)
  return Number.isFinite(ratio) && ratio > 0 ? ratio : 1
}
