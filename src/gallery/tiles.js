/** The elements of the page. Every text of the data becomes a text node or an attribute, never HTML. */

/** An element with attributes, and children that are elements or texts. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined) made.setAttribute(key, value)
  made.append(...children)
  return made
}

export const FULL_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
const SHORT_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })

/** A browser takes seconds to lay out a text of a megabyte. */
export const beginningOf = (text, characters) =>
  text.length <= characters ? text : `${text.slice(0, characters)}…`

/** `0:05`, `1:02:03`. */
function lengthText(seconds) {
  const whole = Math.round(seconds)
  const two = (value) => String(value).padStart(2, '0')
  const minutes = Math.floor(whole / 60)
  return minutes < 60
    ? `${minutes}:${two(whole % 60)}`
    : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)}`
}

/** Shown in place of a file that the browser cannot show: its extension. */
const cardOf = ({ name, media }) =>
  element(
    'span',
    { class: 'card', 'aria-hidden': 'true' },
    (/\.([\w]{1,6})$/.exec(name)?.[1] ?? media).toUpperCase(),
  )

/**
 * The picture or the player of an item. `onRatio` is called with the ratio that the file turns out to have. Tiles load
 * only the first frame of a video, and nothing of other files.
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
    // Safari shows the first frame only when asked for a time.
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

const partText = ({ part, parts }) => (parts > 1 ? `${part} of ${parts}` : '')

/** One result of the grid: a list item with one button. */
export function tileOf(item, { index, count, onOpen, onRatio }) {
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
    element('span', { class: `frame ${media}` }, shown, ...(media === 'video' ? [length] : [])),
    element('span', { class: 'unseen' }, `${MEDIA_WORDS[media]}: `),
    element(
      'span',
      { class: 'prompt', dir: 'auto' },
      beginningOf(run.prompt === '' ? item.name : run.prompt, 300),
    ),
    element('span', { class: 'facts' }, [partText(item), date, run.model].filter(Boolean).join(' · ')),
  )
  button.addEventListener('click', () => onOpen(index))
  button.addEventListener('keydown', (event) => {
    if (event.key !== ' ' || media !== 'video' || shown.paused === undefined) return
    event.preventDefault()
    if (event.repeat) return
    if (shown.paused) shown.play().catch(() => {})
    else shown.pause()
  })
  // A button is pressed by the release of the space key.
  button.addEventListener('keyup', (event) => {
    if (event.key === ' ' && media === 'video') event.preventDefault()
  })
  for (const name of ['play', 'pause', 'ended'])
    shown.addEventListener(name, () => button.classList.toggle('playing', !shown.paused && !shown.ended))
  return element('li', { 'aria-setsize': String(count), 'aria-posinset': String(index + 1) }, button)
}

/** Copies without a permission: `navigator.clipboard` is missing in some browsers for pages from disk. */
export async function copyText(text, beside) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const field = element('textarea', {
      class: 'hidden',
      readonly: '',
      'aria-hidden': 'true',
      tabindex: '-1',
    })
    field.value = text
    // Within the dialog, because nothing outside of it can be selected while it is open.
    beside.after(field)
    field.select()
    const isCopied = document.execCommand('copy')
    field.remove()
    beside.focus()
    return isCopied
  }
}
