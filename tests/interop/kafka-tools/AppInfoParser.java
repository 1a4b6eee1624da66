package org.apache.kafka.common.utils;

/** Where the file connectors look for it; in 4.4 it has moved. */
public class AppInfoParser {
    public static String getVersion() { return org.apache.kafka.common.utils.internals.AppInfoParser.getVersion(); }
}
