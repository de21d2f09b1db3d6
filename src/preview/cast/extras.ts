// Figures that the set lacks, drawn in its style, in its box of 32 x 32 with the foot at 30.

export const EXTRAS: Readonly<Record<string, string>> = {
  'hot-air-balloon':
    '<path fill="#f8312f" d="M16 1.5C8.8 1.5 4.5 6.6 4.5 12c0 5.5 5 9.4 8.6 12.3h5.8C22.5 21.4 27.5 17.5 27.5 12 27.5 6.6 23.2 1.5 16 1.5"/>' +
    '<path fill="#ffb02e" d="M16 1.500c-3.9 0-6.2 5-6.2 10.5 0 5 2.6 9.2 4.5 12.300h3.400c1.9-3.1 4.5-7.3 4.5-12.300C22.2 6.5 19.9 1.5 16 1.5"/>' +
    '<path fill="#fff1d8" d="M16 1.500c-1.6 0-2.6 5-2.6 10.5 0 4.8 1.1 9.2 1.9 12.300h1.400c.8-3.1 1.9-7.5 1.9-12.3 0-5.5-1-10.5-2.6-10.5"/>' +
    '<path fill="none" stroke="#6d4534" stroke-width=".5" d="m13.2 24.3.6 2.500m5-2.5-.6 2.5"/><path fill="#a56953" d="M13.3 26.600h5.400l-.5 3.400h-4.400z"/><path fill="#6d4534" d="M13.1 26.200h5.800v1h-5.800z"/>',
  lighthouse:
    '<path fill="#636363" d="M7 30q2-3 9-3t9 3z"/><path fill="#f4f4f4" d="M13 9.500h6l1.8 18.500h-9.600z"/>' +
    '<path fill="#f8312f" d="m12.7 13 6.6 0 .4 4h-7.400zm-.8 8h8.200l.4 4h-9z"/><path fill="#433b6b" d="M12 8.600h8v1.400h-8z"/>' +
    '<path fill="#ffb02e" d="M13.4 5h5.200v3.600h-5.200z"/><path fill="#fff3b0" d="M14.8 5h2.400v3.600h-2.400z"/><path fill="#f8312f" d="M12.6 5 16 1.8 19.4 5z"/>' +
    '<path fill="#fff3b0" fill-opacity=".35" d="M19 6.2 31.5 3v7.400L19 7.800z"/><path fill="#433b6b" d="M15 25.500h2V28h-2z"/>',
  windmill:
    '<path fill="#f4f4f4" d="M12.6 13h6.800L21.5 30h-11z"/><path fill="#d3d3d3" d="M16 13h3.400L21.5 30H16z"/><path fill="#a56953" d="M12 13.4 16 9l4 4.400z"/>' +
    '<path fill="#6d4534" d="M14.7 25h2.600v5h-2.600zM15 17h2v2.400h-2z"/><g fill="#fff1d8" stroke="#6d4534" stroke-width=".5">' +
    '<path d="M16.2 11.6 23 3.400l1.9 1.5-7.3 7.900z"/><path d="M16.2 12.4 24.4 19l-1.5 1.9-7.9-7.300z"/><path d="M15.6 12.4 9 20.6 7 19.100l7.5-7.900z"/><path d="M15.8 11.6 7.6 5l1.5-1.9 7.9 7.300z"/></g><circle cx="16" cy="12" r="1.3" fill="#6d4534"/>',
  'paper-boat':
    '<path fill="#d3d3d3" d="m16 6 6.5 13h-13z"/><path fill="#fff" d="M16 6v13H9.500z"/><path fill="#f4f4f4" d="M2 16.5 9 28h14l7-11.5-8.5 3.500h-11z"/>' +
    '<path fill="#d3d3d3" d="M30 16.5 23 28h-7v-6l5.5-2z"/>',
}
