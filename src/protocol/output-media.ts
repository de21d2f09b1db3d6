/** How an output is shown, by its content type. */

export type MediaType = 'image' | 'video' | 'audio' | 'file'

/** A browser shows these and runs nothing in them. Others are only downloaded: they would run as a page of the service. */
const IMAGES: readonly string[] = ['png', 'jpeg', 'webp', 'gif', 'avif', 'bmp']

export function mediaTypeOf(contentType: string): MediaType {
  const [type = '', subtype = ''] = contentType.toLowerCase().split(';')[0]?.trim().split('/') ?? []
  if (type === 'image') return IMAGES.includes(subtype) ? 'image' : 'file'
  return type === 'video' || type === 'audio' ? type : 'file'
}
