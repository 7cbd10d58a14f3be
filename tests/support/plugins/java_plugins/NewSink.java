package io.pyconnect.tests;

/** Its class file is made one of a Java that is not there yet. */
public class NewSink extends NoteSink {}
