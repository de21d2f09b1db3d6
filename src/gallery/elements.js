/**
 * Creates the elements of the page: tiles, pictures and players. Text from the data becomes a text node or an attribute,
 * never HTML.
 */

/** Creates an element with attributes. `children` are elements or texts. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined) made.setAttribute(key, value)
  made.append(...children)
  return made
}

export const FULL_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
const SHORT_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })

/** Shortens text, because a browser takes seconds to lay out a text of 1 MB. */
export const beginningOf = (text, characters) =>
  text.length <= characters ? text : `${text.slice(0, characters)}…`

/** Formats a duration: `0:05`, `1:02:03`. */
function lengthText(seconds) {
  const whole = Math.round(seconds)
  const two = (value) => String(value).padStart(2, '0')
  const minutes = Math.floor(whole / 60)
  return minutes < 60
    ? `${minutes}:${two(whole % 60)}`
    : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)}`
}

/** Creates the placeholder of a file that the browser cannot show: its extension. */
const cardOf = ({ name, media }) =>
  element(
    'span',
    { class: 'card', 'aria-hidden': 'true' },
    (/\.([\w]{1,6})$/.exec(name)?.[1] ?? media).toUpperCase(),
  )

/**
 * Creates the picture or the player of an item. Calls `onRatio` with the real ratio of the file once it is
 * loaded. Tiles load images and the first frame of a video, but no other files.
 */
export function mediaOf(item, { isLarge, onRatio = () => {} }) {
  const fail = (media) => () => {
    const note = element(
      'span',
      { class: 'missing' },
      'This file was moved or deleted, or the browser cannot show it.',
    )
    media.replaceWith(isLarge ? note : cardOf(item))
  }
  if (item.media === 'image') {
    const image = element('img', { alt: '', decoding: 'async', loading: isLarge ? 'eager' : 'lazy' })
    image.addEventListener('error', fail(image))
    image.addEventListener('load', () => onRatio(image.naturalWidth / image.naturalHeight))
    image.src = item.href
    return image
  }
  if (item.media === 'video') {
    const video = element('video', {
      preload: 'metadata',
      playsinline: '',
      ...(isLarge ? { controls: '' } : {}),
    })
    video.addEventListener('error', fail(video))
    video.addEventListener('loadedmetadata', () => onRatio(video.videoWidth / video.videoHeight))
    // Safari shows the first frame only if the URL contains a time.
    video.src = isLarge ? item.href : `${item.href}#t=0.001`
    return video
  }
  if (item.media === 'audio' && isLarge) {
    const audio = element('audio', { controls: '', preload: 'metadata' })
    audio.addEventListener('error', fail(audio))
    audio.src = item.href
    return audio
  }
  return cardOf(item)
}

export const MEDIA_WORDS = { image: 'Image', video: 'Video', audio: 'Audio', file: 'File' }

/** Returns the caption of an item: its prompt, or the name of its file. */
export const titleOf = ({ run, name }) => beginningOf(run.prompt === '' ? name : run.prompt, 300)

/** Describes how many variants a unit has. */
export function variantsText(variants) {
  const [{ run, part, parts }] = variants
  if (variants.length === 1) return parts > 1 ? `${part} of ${parts}` : ''
  return `${variants.length} ${variants.every((each) => each.run === run) ? 'outputs' : 'variants'}`
}

/** Formats an amount in millionths, as the command line does: `0.4 USD`. */
export const amountText = (millionths, currency) =>
  `${millionths / 1e6} ${currency === 'credits' && millionths === 1e6 ? 'credit' : currency}`

/**
 * Creates the tile of one result: a list item with one button. The variants of a unit have one caption, which is below
 * one of them; the others have it for screen readers.
 */
export function tileOf({ item, variants, at }, { index, position, size, onOpen, onRatio }) {
  const { run, media } = item
  const length = element('span', { class: 'length', 'aria-hidden': 'true' })
  const shown = mediaOf(item, { isLarge: false, onRatio })
  shown.addEventListener('loadedmetadata', () => {
    if (Number.isFinite(shown.duration)) length.textContent = lengthText(shown.duration)
  })
  const date = SHORT_TIME.format(run.time)
  const button = element(
    'button',
    { type: 'button', class: 'tile', tabindex: '-1' },
    element(
      'span',
      { class: `frame ${media}` },
      shown,
      ...(media === 'video' ? [length] : []),
      ...(item.marks
        ? [element('span', { class: 'marked', title: `${item.marks} (not verified)` }, 'Marked')]
        : []),
    ),
    element(
      'span',
      { class: 'caption' },
      element(
        'span',
        { class: 'unseen' },
        `${MEDIA_WORDS[media]}${variants.length > 1 ? ` ${at + 1} of ${variants.length}` : ''}: `,
      ),
      element('span', { class: 'prompt', dir: 'auto' }, titleOf(item)),
      element(
        'span',
        { class: 'facts' },
        [variantsText(variants), date, run.model].filter(Boolean).join(' · '),
      ),
    ),
  )
  button.addEventListener('click', () => onOpen(index))
  button.addEventListener('keydown', (event) => {
    if (event.key !== ' ' || media !== 'video' || shown.paused === undefined) return
    event.preventDefault()
    if (event.repeat) return
    if (shown.paused) shown.play().catch(() => {})
    else shown.pause()
  })
  // Releasing the space key would press the button.
  button.addEventListener('keyup', (event) => {
    if (event.key === ' ' && media === 'video') event.preventDefault()
  })
  for (const name of ['play', 'pause', 'ended'])
    shown.addEventListener(name, () => button.classList.toggle('playing', !shown.paused && !shown.ended))
  return element('li', { 'aria-setsize': String(size), 'aria-posinset': String(position) }, button)
}
