/** The large view: one result, with everything known of it. */
import { beginningOf, copyText, element, FULL_TIME, MEDIA_WORDS, mediaOf } from './tiles.js'

export function createViewer(dialog, { itemAt, count, onClose }) {
  const find = (name) => dialog.querySelector(`[data-part="${name}"]`)
  const [stage, prompt, facts, actions, said] = ['stage', 'prompt', 'facts', 'actions', 'said'].map(find)
  const [previous, next, close] = ['previous', 'next', 'close'].map(find)
  let current = 0

  function factRows({ run, name, href, isOpened, width, height, size, part, parts }) {
    const pixels = width === undefined ? '' : `${width} × ${height}, `
    return [
      ['Model', run.model],
      ['Run', run.id],
      ['Created', FULL_TIME.format(run.time)],
      [
        'Took',
        run.tookMs === undefined ? '' : `${(run.tookMs / 1000).toFixed(run.tookMs < 10_000 ? 1 : 0)} s`,
      ],
      ['Service', run.where],
      ['Output', parts > 1 ? `${part} of ${parts}` : ''],
      // A page or a drawing could contain scripts.
      ['File', isOpened ? element('a', { href, target: '_blank', rel: 'noopener' }, name) : name],
      ['Size', `${pixels}${size}`],
    ].filter(([, value]) => value !== '')
  }

  function showFacts(item) {
    facts.replaceChildren(
      ...factRows(item).flatMap(([name, value]) => [
        element('dt', {}, name),
        element('dd', {}, element('bdi', {}, value)),
      ]),
    )
  }

  function copyButton(text, copied) {
    const button = element('button', { type: 'button' }, text)
    button.addEventListener('click', async () => {
      said.textContent = ''
      const isCopied = await copyText(copied, button)
      said.textContent = isCopied ? 'Copied' : 'The browser did not allow copying'
      button.classList.toggle('done', isCopied)
      setTimeout(() => button.classList.remove('done'), 1500)
    })
    return button
  }

  /** The old player would continue to play. */
  function clearStage() {
    for (const media of stage.querySelectorAll('video, audio')) media.pause()
    stage.replaceChildren()
  }

  function show(index) {
    current = index
    const item = itemAt(index)
    const { run } = item
    clearStage()
    const media = mediaOf(item, { isLarge: true })
    if (item.media === 'image') media.alt = beginningOf(run.prompt === '' ? item.name : run.prompt, 300)
    else if (item.media !== 'file')
      media.setAttribute('aria-label', beginningOf(run.prompt === '' ? item.name : run.prompt, 300))
    stage.append(media)
    media.addEventListener('loadedmetadata', () => {
      if (!(media.videoWidth > 0)) return
      item.width = media.videoWidth
      item.height = media.videoHeight
      if (current === index && dialog.open) showFacts(item)
    })
    if (item.media === 'video' && !matchMedia('(prefers-reduced-motion: reduce)').matches)
      media.play().catch(() => {})
    // The whole prompt can be copied; the layout of a megabyte would take seconds.
    prompt.textContent = beginningOf(run.prompt, 5_000)
    prompt.hidden = run.prompt === ''
    showFacts(item)
    actions.replaceChildren(
      ...(run.again === undefined ? [] : [copyButton('Copy command', run.again)]),
      ...(run.id === '' ? [] : [copyButton('Copy run id', run.id)]),
      ...(run.prompt === '' ? [] : [copyButton('Copy prompt', run.prompt)]),
    )
    said.textContent = ''
    previous.disabled = index === 0
    next.disabled = index === count() - 1
    dialog.setAttribute('aria-label', `${MEDIA_WORDS[item.media]} ${index + 1} of ${count()}`)
    dialog.querySelector('.about').scrollTop = 0
  }

  function move(step) {
    const index = current + step
    if (index < 0 || index >= count()) return
    const held = document.activeElement
    show(index)
    // A disabled or replaced button loses the focus, and the keys with it.
    if (!dialog.contains(document.activeElement) || held?.disabled || !held?.isConnected) dialog.focus()
  }

  previous.addEventListener('click', () => move(-1))
  next.addEventListener('click', () => move(1))
  close.addEventListener('click', () => dialog.close())
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog || event.target === stage) dialog.close()
  })
  dialog.addEventListener('close', () => {
    clearStage()
    onClose(current)
  })
  dialog.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const { target, key } = event
    const isPlayer = target.matches('video, audio')
    if (key === 'ArrowLeft' && !isPlayer) move(-1)
    else if (key === 'ArrowRight' && !isPlayer) move(1)
    else if (key === ' ' && !isPlayer && !target.matches('button, a')) {
      const player = stage.querySelector('video, audio')
      if (player?.paused) player.play().catch(() => {})
      else player?.pause()
    } else return
    event.preventDefault()
  })

  return {
    open(index) {
      for (const media of document.querySelectorAll('video')) media.pause()
      show(index)
      dialog.showModal()
      dialog.focus()
    },
  }
}
